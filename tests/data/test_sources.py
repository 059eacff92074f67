"""Finding the competition's files: their names, two of one role, none at all, the sample."""

from dataclasses import replace
from pathlib import Path

import pytest

from src.config import DataConfig
from src.data import sources
from src.data.sources import SAMPLE, Sources, TrainFileMissing, find_data, find_sources
from src.errors import UserError

TABLE = "id,category,query1,query2,label\n7,肺炎,肺炎会传染吗?,肺炎传不传染？,1\n"


def make(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).write_text(TABLE)
    return directory


@pytest.mark.parametrize(
    "train, dev, test",
    [
        ("train.csv", "dev.csv", "test.csv"),
        ("train_20200228.csv", "dev_20200228.csv", "test.example_20200228.csv"),
        ("train_20200228 (1).csv", "dev_20200228 (2).csv", "test_20200228.csv"),
        ("TRAIN.CSV", "Dev.csv", "test.CSV"),
        ("train.csv", "val.csv", "test.csv"),
        ("train.csv", "validation.csv", "test.csv"),
        ("train.csv", "VALID.csv", "test.csv"),
    ],
)
def test_names_under_which_the_files_circulate(
    tmp_path: Path, train: str, dev: str, test: str
) -> None:
    make(tmp_path, train, dev, test, "mytrain.csv", "train.csv.bak", "submission.example.csv")
    expected = {"train": tmp_path / train, "dev": tmp_path / dev, "test": tmp_path / test}
    assert find_data(tmp_path) == expected
    (tmp_path / dev).unlink()
    (tmp_path / test).unlink()
    assert find_data(tmp_path) == {"train": tmp_path / train}


def test_what_is_read_as_what_and_what_is_not_is_said(tmp_path: Path) -> None:
    make(tmp_path, "Train.csv", "val.csv", "testA.csv", "notes.xlsx", "picture.png")
    found = find_sources(DataConfig(dir=tmp_path))
    assert found.read == "Train.csv, val.csv as dev"
    assert found.not_read == ["notes.xlsx", "testA.csv"]


def test_two_candidates_must_have_the_same_content(tmp_path: Path) -> None:
    make(tmp_path, "train.csv", "train_20200228 (1).csv", "train_20200228.csv")
    assert find_data(tmp_path) == {"train": tmp_path / "train.csv"}
    (tmp_path / "train_20200228.csv").write_text(TABLE + "4,,甲,乙,1\n")
    with pytest.raises(UserError, match="train.csv.*train_20200228.csv.*differ") as caught:
        find_data(tmp_path)
    assert not isinstance(caught.value, TrainFileMissing)


def test_no_training_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for directory, part in [
        (tmp_path / "empty", "it has no CSV file"),
        (tmp_path / "no", "does not exist"),
        (make(tmp_path, "dev.csv", "pairs.csv"), "'dev.csv', 'pairs.csv'"),
    ]:
        with pytest.raises(TrainFileMissing, match=part) as caught:
            find_data(directory)
        assert str(directory) in str(caught.value) and "data.dir=" in str(caught.value)


def test_file_and_directory_mixed_up(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this is a file"):
        find_data(make(tmp_path, "train.csv") / "train.csv")
    (tmp_path / "dev.csv").mkdir()
    with pytest.raises(UserError, match="dev.csv.*directory"):
        find_data(tmp_path)


def test_the_competition_files(competition: Path) -> None:
    assert set(find_data(competition / "tianchi")) == {"train", "dev", "test"}


# --- which directory is taken


def test_roles_are_the_files_that_exist_in_their_order() -> None:
    whole = Sources(Path("a"), Path("b"), Path("c"), Path("d"), is_sample=False)
    assert whole.roles == [
        ("train", Path("a")),
        ("dev", Path("b")),
        ("test", Path("c")),
        ("external", Path("d")),
    ]
    assert [role for role, _ in replace(whole, dev=None, external=None).roles] == ["train", "test"]


@pytest.fixture
def default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataConfig:
    """Settings that name no directory; the one that stands for data/raw is empty."""
    config = DataConfig(dir=tmp_path)
    monkeypatch.setattr(sources, "DataConfig", lambda: config)
    return config


def test_the_mirror_is_asked_where_no_directory_was_named(
    default: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sources, "fetch_mirror", lambda target, echo: bool(make(target, "train.csv"))
    )
    found = find_sources(default)
    assert found.roles == [("train", default.dir / "train.csv")] and not found.is_sample


@pytest.mark.parametrize("mirror", [True, False])
def test_the_sample_is_taken_last_and_loudly(
    default: DataConfig, monkeypatch: pytest.MonkeyPatch, capsys, mirror: bool
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(sources, "fetch_mirror", lambda target, echo: asked.append(target))
    found = find_sources(default.model_copy(update={"mirror": mirror}))
    assert found.is_sample and found.train == SAMPLE / "train.csv" and bool(asked) == mirror
    said = capsys.readouterr().err
    assert "SAMPLE" in said and str(default.dir) in said


def test_a_directory_that_was_named_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "fetch_mirror", lambda *_, **__: pytest.fail("mirror asked"))
    with pytest.raises(TrainFileMissing):
        find_sources(DataConfig(dir=tmp_path))
    with pytest.raises(UserError, match="data.external=.*no such file"):
        find_sources(DataConfig(dir=SAMPLE, external=tmp_path / "no.csv"))
