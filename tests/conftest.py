"""What all tests share: patient hypothesis settings, and the encoders, which are made once."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Shared machines stall now and then; a deadline would turn that into a failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which named encoders are made on first use."""
    return tmp_path_factory.mktemp("pretrained")


@pytest.fixture(scope="session")
def sample() -> Path:
    """The repository's own train, dev and test files."""
    return Path(__file__).parents[1] / "data" / "sample"


@pytest.fixture(scope="session")
def competition() -> Path:
    """The folder that holds tianchi/, variants/, article-split/ and external/."""
    if "TIANCHI_DATA" not in os.environ:
        pytest.skip("TIANCHI_DATA is not set: the competition files are not here")
    return Path(os.environ["TIANCHI_DATA"])


@pytest.fixture
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training of a few steps, which learns nothing, is not repeated for that."""
    from src.training import fold_model

    monkeypatch.setattr(fold_model, "has_learned", lambda *arguments: True)


@pytest.fixture(scope="session")
def matcher(tmp_path_factory: pytest.TempPathFactory, sample: Path, pretrained: Path):
    """A trained run of the tiny profile, opened for search."""
    from tiny_run import cut_sample, settings

    from src.config import load_config
    from src.pipeline import Pipeline
    from src.search import Matcher

    folder = tmp_path_factory.mktemp("searched")
    cut_sample(sample, folder / "data")
    config = load_config("tiny", settings(folder, pretrained))
    Pipeline(config).run("train")
    return Matcher.of(config)
