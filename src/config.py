"""The typed configuration: a profile (profiles/*.yaml) fills it, key=value overrides it."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from yaml import YAMLError

from .errors import UserError

# The defaults lie in the repository, wherever a run is started from; paths that a user gives are
# relative to the current directory, as in any other command.
ROOT = Path(__file__).resolve().parents[1]
PROFILES = ROOT / "src" / "profiles"

# Below 2³¹, so that the number of a fold or an epoch can be added.
Seed = Annotated[int, Field(ge=0, lt=2**31)]
# These are text, whatever they look like: a folder may be called 2024, off or 1e3.
_VERBATIM = re.compile(
    r"(paths\.\w+|data\.dir|data\.external(?!=null$)|members\.[^.=]+\.encoder)=(.+)", re.DOTALL
)


class Settings(BaseModel):
    """Base of all sections: immutable, and an unknown key is an error, not a silent typo."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataConfig(Settings):
    """Where the competition files are, and what dev is used for."""

    dir: Path = ROOT / "data" / "raw"
    mirror: bool = True  # may the public mirror be asked when `dir` is empty?
    use_dev: Literal["holdout", "train"] = "holdout"
    external: Path | None = None  # labelled pairs added to every fold's training part


class SplitConfig(Settings):
    """Folds over connected components of the question graph."""

    folds: int = Field(3, ge=2)
    seed: Seed = 2020


class AugmentConfig(Settings):
    """Augmentation of a fold's training part. Ratios are relative to its original pairs."""

    swap: float = Field(0.5, ge=0, le=1)  # chance that the cross-encoder sees a pair reversed
    closure: float = Field(0.0, ge=0)  # pairs added by transitive closure
    entity: float = Field(0.0, ge=0)  # pairs copied with another disease or drug
    seed: Seed = 2020


class AdversarialConfig(Settings):
    """Perturbation of the word embeddings: FGM (Miyato 2017) or PGD (Madry 2018).

    `noise` moves them as far as FGM does, but in a random direction: the control of an experiment.
    """

    method: Literal["none", "fgm", "pgd", "noise"] = "none"
    # Radius of the ball over all words of a batch together, in mean lengths of a word vector.
    epsilon: float = Field(0.3, gt=0)
    steps: int = Field(3, ge=1)  # PGD only


class TrainingConfig(Settings):
    """One member's optimisation."""

    epochs: int = Field(3, ge=1)
    batch_pairs: int = Field(64, ge=2)
    accumulation: int = Field(1, ge=1)
    encoder_lr: float = Field(2e-4, gt=0)
    head_lr: float = Field(1e-3, gt=0)
    layer_decay: float = Field(1.0, gt=0, le=1)  # learning rate factor per layer, top to bottom
    weight_decay: float = Field(0.01, ge=0)
    warmup: float = Field(0.1, ge=0, lt=1)  # share of the steps
    label_smoothing: float = Field(0.05, ge=0, lt=0.5)
    clip_norm: float = Field(1.0, gt=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    gradient_checkpointing: bool = False
    adversarial: AdversarialConfig = AdversarialConfig()


class MemberConfig(Settings):
    """One model of the ensemble."""

    architecture: str  # "siamese" or "cross", see models/registry.py
    encoder: str  # "e5-small-zh" (embedded), "tiny", a local directory, or a hub name
    pooling: Literal["mean", "cls", "max"] = "mean"
    features: tuple[Literal["u", "v", "|u-v|", "u*v"], ...] = Field(
        ("u", "v", "|u-v|"), min_length=1
    )  # siamese
    # Terms beside the cross-entropy and their weights, such as {contrastive: 0.2}; a weight of 0
    # is none. See training/objective.py.
    losses: dict[str, Annotated[float, Field(ge=0)]] = {}
    max_length: int = Field(64, ge=8)  # tokens per question
    seed: Seed = 2020
    start: str | None = None  # an earlier member, whose encoder of the same fold is trained on
    training: TrainingConfig = TrainingConfig()


class PretrainConfig(Settings):
    """Continued pre-training of an encoder on unlabelled questions (`bash run.sh pretrain`)."""

    epochs: int = Field(2, ge=1)
    batch: int = Field(64, ge=1)  # questions a step, at most
    learning_rate: float = Field(1e-4, gt=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    max_length: int = Field(64, ge=8)  # tokens per question
    precision: Literal["auto", "bf16", "fp32"] = "auto"
    seed: Seed = 2020


class EnsembleConfig(Settings):
    """How the members' predictions become labels."""

    # Pair by pair, or a question's candidates together; auto: together where the test file is made
    # of groups as train is, and where that is better out of fold.
    decide: Literal["auto", "pairs", "groups"] = "auto"


class TuneConfig(Settings):
    """Optuna's search for member weights, threshold and group rule."""

    trials: int = Field(200, ge=1)
    seed: Seed = 2020


class OptunaConfig(Settings):
    """Where the study lives; any Optuna storage URL, so that machines can share it."""

    storage: str | None = None  # None: SQLite in the work directory


class PathsConfig(Settings):
    """Folders that a run writes to."""

    work: Path = ROOT / "data" / "work"
    pretrained: Path = ROOT / "data" / "pretrained"
    submissions: Path = ROOT / "submissions"


class Config(Settings):
    """Everything a run depends on."""

    profile: str
    data: DataConfig = DataConfig()
    split: SplitConfig = SplitConfig()
    augment: AugmentConfig = AugmentConfig()
    members: dict[str, MemberConfig] = Field(min_length=1)
    pretrain: PretrainConfig = PretrainConfig()
    tune: TuneConfig = TuneConfig()
    ensemble: EnsembleConfig = EnsembleConfig()
    optuna: OptunaConfig = OptunaConfig()
    paths: PathsConfig = PathsConfig()

    @model_validator(mode="after")
    def _starts_are_earlier_members(self) -> "Config":
        earlier: dict[str, str] = {}
        for name, member in self.members.items():
            if member.start is not None and earlier.get(member.start) != member.encoder:
                raise ValueError(
                    f"members.{name}.start={member.start} names no member that is listed before "
                    f"{name} and has the encoder {member.encoder}"
                )
            earlier[name] = member.encoder
        return self


def load_config(
    profile: str, overrides: list[str] | None = None, data_dir: str | None = None
) -> Config:
    """Fill the configuration from `profiles/<profile>.yaml` and `key=value` overrides.

    A `training` section at the top stands for that of every member. What is said of one member
    goes before what is said of all, an override before the profile: `training.epochs=1` also
    replaces the epochs that the profile gives a single member.

    Args:
        data_dir: data.dir, taken as it is (no YAML in it); an override goes before it.

    Raises:
        UserError: unknown profile, unknown key, or a value outside its range.
    """
    path = PROFILES / f"{profile}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yaml")))
        raise UserError(f"There is no profile '{profile}'. Choose one of: {known}.")
    for override in overrides or []:
        if "=" not in override:
            raise UserError(f"'{override}' is not a setting. Write it as key=value.")
    try:
        settings = [override for override in overrides or [] if not _VERBATIM.fullmatch(override)]
        layers = [_mapping(OmegaConf.load(path)), OmegaConf.from_dotlist(settings)]
        for override in overrides or []:
            if match := _VERBATIM.fullmatch(override):
                # Behind a "=" a shell does not expand ~.
                OmegaConf.update(layers[1], match[1], os.path.expanduser(match[2]))
        if "profile" in layers[1]:
            raise UserError("The profile is chosen by --profile NAME, not by profile=NAME.")
        sections = [layer.get("members") for layer in layers]
        # A dict, because it keeps the order in which the members are listed.
        found = (name for s in sections if isinstance(s, DictConfig) for name in s)
        names = dict.fromkeys(map(str, found))
        merged = OmegaConf.merge(*(_share_training(layer, names) for layer in layers))
        content: dict[str, Any] = OmegaConf.to_container(merged, resolve=True)  # type: ignore
    except (OmegaConfBaseException, YAMLError) as error:
        raise UserError(f"The settings cannot be read: {error}") from error
    if data_dir and "data" not in content:
        content["data"] = {}
    if data_dir and isinstance(content["data"], dict):
        content["data"].setdefault("dir", data_dir)
    try:
        return Config(profile=profile, **content)
    except ValidationError as error:
        raise UserError(_explain(error)) from error


def _share_training(layer: DictConfig, names: Iterable[str]) -> DictConfig:
    """Move a layer's `training` section into every member, below what the member has itself."""
    shared = layer.pop("training", {})
    members = {name: {"training": shared} for name in names}
    return _mapping(OmegaConf.merge({"members": members}, layer))


def _mapping(content: Any) -> DictConfig:
    if not isinstance(content, DictConfig):
        raise UserError("A profile is a mapping of sections.")
    return content


def _explain(error: ValidationError) -> str:
    """Pydantic's findings, one line each, in the words of a `key=value` user."""
    lines = ["The settings are not valid:"]
    for finding in error.errors():
        if not finding["loc"]:  # about several settings together
            lines.append(f"  {finding['msg'].removeprefix('Value error, ')}")
            continue
        key = ".".join(str(part) for part in finding["loc"])
        lines.append(f"  {key}: {finding['msg']} (got {finding['input']!r})")
    return "\n".join(lines)


DEMO = "demo"  # the profile of a run on the sample, where no other is named


def default_profile() -> str:
    """`large` where a CUDA GPU with 15 GB or more is present, else `small`."""
    import torch

    if torch.cuda.is_available() and torch.cuda.get_device_properties(0).total_memory >= 15e9:
        return "large"
    return "small"
