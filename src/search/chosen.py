"""Which of the trained weights answer: one fold model, by its out-of-fold loss."""

from dataclasses import dataclass
from pathlib import Path

from ..config import Config, MemberConfig
from ..errors import UserError
from ..files import read_json
from ..layout import Layout
from ..models.registry import family_of
from ..training.fold_model import WEIGHTS, read_member


@dataclass(frozen=True)
class Chosen:
    """A fold model: its settings, fold, folder and out-of-fold loss."""

    name: str
    member: MemberConfig
    fold: int
    folder: Path
    loss: float

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS

    def __str__(self) -> str:
        return f"{self.name} fold {self.fold} (out-of-fold loss {self.loss:.4f})"


def choose(config: Config, layout: Layout, architecture: str) -> Chosen:
    """The fold model with the lowest out-of-fold loss among the members of an architecture.

    A search needs one vector a question, so one model answers and not the ensemble. Members whose
    encoder is not a transformers model are left out, because no other tool could load them. The
    loss is that of the last epoch on the fold's own rows; the official dev file plays no part.

    Args:
        architecture: "siamese" or "cross".

    Raises:
        UserError: the profile has no such member, or none of them is trained.
    """
    members = [
        name
        for name, member in config.members.items()
        if member.architecture == architecture and family_of(member.encoder).gives_tokens
    ]
    if not members:
        raise UserError(
            f"Profile '{config.profile}' has no {architecture} member on a transformers encoder. "
            "Choose another profile, or add such a member."
        )
    found = []
    for name in members:
        for fold in range(layout.folds):
            folder = layout.fold_model(name, fold)
            if (folder / "done.json").is_file() and (folder / WEIGHTS).is_file():
                trained = read_member(folder)
                loss = read_json(folder / "history.json")[-1]["valid_loss"]
                found.append(Chosen(name, trained, fold, folder, loss))
    if not found:
        raise UserError(
            f"No {architecture} member of profile '{config.profile}' is trained (nothing in "
            f"{layout.work / 'train'}). Run first: bash run.sh --profile {config.profile}"
        )
    return min(found, key=lambda model: model.loss)
