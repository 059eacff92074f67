"""The configuration: what wins over what, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from src import config
from src.config import PROFILES, ROOT, load_config
from src.errors import UserError

PROFILE = """
training: {epochs: 7, batch_pairs: 16}
members:
  plain: {architecture: siamese, encoder: tiny}
  special: {architecture: cross, encoder: tiny, training: {epochs: 9}}
"""


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A profile that sets the epochs of all members, and of one of them others."""
    (tmp_path / "mine.yaml").write_text(PROFILE)
    monkeypatch.setattr(config, "PROFILES", tmp_path)
    return "mine"


@pytest.mark.parametrize("name", sorted(path.stem for path in PROFILES.glob("*.yaml")))
def test_every_profile_loads(name: str) -> None:
    loaded = load_config(name)
    assert loaded.profile == name
    assert loaded.members


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="no profile 'huge'.*tiny"):
        load_config("huge")


@pytest.mark.parametrize(
    "override, key",
    [
        ("tune.trails=3", "tune.trails"),
        ("tune.trials=0", "tune.trials"),
        ("tune.trials=many", "tune.trials"),
        ("split.folds=1", "split.folds"),
        ("augment.swap=1.5", "augment.swap"),
        ("augment.closure=-1", "augment.closure"),
        ("data.use_dev=maybe", "data.use_dev"),
        ("data=5", "data"),
        ("members=5", "members"),
        ("members.siamese-fgm=5", "members.siamese-fgm"),
        ("members.typo.training.epochs=1", "members.typo.architecture"),
        ("members.siamese-fgm.pooling=median", "members.siamese-fgm.pooling"),
        ("training.epochs=0", "members.siamese-fgm.training.epochs"),
        ("training.label_smoothing=0.5", "members.siamese-fgm.training.label_smoothing"),
        ("training=5", "members.siamese-fgm.training"),
        ("training.adversarial.method=fgsm", "members.siamese-fgm.training.adversarial.method"),
        ("colour=blue", "colour"),
        ("split.seed=-1", "split.seed"),
        ("members.siamese-fgm.seed=2147483648", "members.siamese-fgm.seed"),
        ("members.siamese-fgm.features=[]", "members.siamese-fgm.features"),
    ],
)
def test_a_setting_that_cannot_be_is_named(override: str, key: str) -> None:
    with pytest.raises(UserError) as error:
        load_config("tiny", [override])
    named = [line.split(":")[0].strip() for line in str(error.value).splitlines()[1:]]
    assert key in named


@pytest.mark.parametrize(
    "override", ["tune.trials", "tune.trials=[", "tune.trials='3", "tune.trials=${seed}"]
)
def test_an_override_that_cannot_be_read_is_refused(override: str) -> None:
    with pytest.raises(UserError, match="setting"):
        load_config("tiny", [override])


def test_the_profile_is_no_setting() -> None:
    with pytest.raises(UserError, match="--profile"):
        load_config("tiny", ["profile=large"])


@pytest.mark.parametrize(
    "overrides, plain, special",
    [
        ([], 7, 9),
        (["training.epochs=5"], 5, 5),
        (["members.special.training.epochs=3"], 7, 3),
        (["training.epochs=5", "members.special.training.epochs=3"], 5, 3),
        (["members.special.training.epochs=3", "training.epochs=5"], 5, 3),
    ],
)
def test_one_member_beats_all_and_an_override_the_profile(
    profile: str, overrides: list[str], plain: int, special: int
) -> None:
    members = load_config(profile, overrides).members
    assert members["plain"].training.epochs == plain
    assert members["special"].training.epochs == special
    assert members["special"].training.batch_pairs == 16


def test_a_member_from_the_command_line_trains_like_the_others(profile: str) -> None:
    overrides = ["members.new.architecture=siamese", "members.new.encoder=tiny"]
    members = load_config(profile, overrides).members
    assert list(members) == ["plain", "special", "new"]
    assert members["new"].training == members["plain"].training


def test_default_paths_are_in_the_repository_and_given_ones_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    paths = load_config("tiny", ["paths.work=here"]).paths
    assert paths.submissions == ROOT / "submissions"
    assert paths.work.resolve() == tmp_path / "here"
    assert (ROOT / "run.sh").is_file()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_data_directory_is_taken_as_it_is(name: str) -> None:
    assert load_config("tiny", [], name).data.dir == Path(name)


@pytest.mark.parametrize("name", ["2024", "off", "1e3", "null", "a,b", "[x]", "{x: 1}", "a=b"])
def test_a_folder_may_be_called_anything(name: str) -> None:
    config = load_config("tiny", [f"paths.work={name}", f"members.cross-pgd.encoder={name}"])
    assert config.paths.work == Path(name) and config.members["cross-pgd"].encoder == name


def test_the_home_directory_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    overrides = ["paths.work=~/work", "data.external=~/pairs.csv", "data.dir=~"]
    config = load_config("tiny", overrides)
    assert config.paths.work == Path("/home/me/work") and config.data.dir == Path("/home/me")
    assert config.data.external == Path("/home/me/pairs.csv")
    assert load_config("tiny", ["data.external=null"]).data.external is None


def test_an_override_beats_the_data_directory() -> None:
    assert load_config("tiny", ["data.dir=b"], "a").data.dir == Path("b")
    assert load_config("tiny", ["data.mirror=off"], "a").data.dir == Path("a")
    assert load_config("tiny", [], "").data.dir == ROOT / "data" / "raw"


def test_a_loaded_configuration_cannot_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        load_config("tiny").tune.trials = 3


@pytest.mark.parametrize(
    "start",
    ["nobody", "cross-e5", "siamese-use-fgm"],  # unknown, itself, another encoder
)
def test_a_member_starts_from_an_earlier_one_with_its_encoder(start: str) -> None:
    with pytest.raises(UserError, match=f"members.cross-e5.start={start} names no member"):
        load_config("small", [f"members.cross-e5.start={start}"])
    config = load_config("small", ["members.cross-e5.start=siamese-e5"])
    assert config.members["cross-e5"].start == "siamese-e5"
