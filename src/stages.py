"""What each stage does, once it is clear that it has to: read files, call a room, write files."""

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from .config import Config
from .data.folds import assign_folds
from .data.pairs import read_pairs, write_pairs
from .data.training_part import training_part
from .errors import UserError
from .files import atomic_path, read_json, write_json
from .layout import Layout


def split(config: Config, layout: Layout, folder: Path) -> None:
    """Assign every training row to a fold."""
    folds = assign_folds(layout.table("train"), config.split.folds, config.split.seed)
    _save(layout.folds_file, folds)


def augment(config: Config, layout: Layout, fold: int) -> None:
    """Write the training part of a fold."""
    evaluation = [layout.table(role) for role in ("dev", "test")]
    part = training_part(
        layout.table("train"),
        layout.fold_numbers(),
        fold,
        [frame for frame in evaluation if frame is not None],
        layout.table("external"),
        config.augment,
    )
    write_pairs(part, layout.part_file(fold))


def train(config: Config, layout: Layout, name: str, fold: int) -> None:
    """Train a member on a fold and predict the fold, dev and test."""
    from .training.member import train_piece

    own = layout.table("train")[layout.fold_numbers() == fold].reset_index(drop=True)
    unseen = {"oof": own, "dev": layout.table("dev"), "test": layout.table("test")}
    member = config.members[name]
    train_piece(
        member,
        fold,
        config.augment.swap,
        read_pairs(layout.part_file(fold), labelled=True).frame,
        {role: frame for role, frame in unseen.items() if frame is not None},
        config.paths.pretrained,
        layout.piece(name, fold),
        f"{name} fold {fold}",
        layout.weights_file(member.start, fold) if member.start else None,
    )


def tune(config: Config, layout: Layout, folder: Path) -> None:
    """Search weights and threshold on all folds, and, for the score, without each fold."""
    from .ensemble.cross_fit import cross_fitted_labels
    from .ensemble.tune import Decision, tune

    labels = layout.table("train")["label"].to_numpy()
    logits, folds = layout.out_of_fold(), layout.fold_numbers()
    storage = config.optuna.storage or f"sqlite:///{folder.resolve() / 'study.db'}"
    # Machines that share a storage share a study only when they search the same thing.
    content = hashlib.sha256(labels.tobytes() + b"".join(v.tobytes() for v in logits.values()))

    def search(
        some_logits: Mapping[str, np.ndarray], some_labels: np.ndarray, part: str
    ) -> Decision:
        return tune(
            some_logits,
            some_labels,
            trials=config.tune.trials,
            seed=config.tune.seed,
            storage=storage,
            study_name=f"{config.profile}-{part}-{content.hexdigest()[:12]}",
            resumable=config.optuna.storage is not None,
        )

    _save(layout.cross_fitted_file, cross_fitted_labels(logits, labels, folds, search))
    write_json(layout.decision_file, asdict(search(logits, labels, "all-folds")))


def submit(layout: Layout, targets: Sequence[Path]) -> None:
    """Decide the test file's pairs; write the submission to the first target, copy it to others."""
    from .ensemble.submission import write_submission

    first, *copies = targets
    labels = read_decision(layout).decide(layout.unseen("test"))
    write_submission(layout.table("test"), labels, first)
    for copy in copies:
        with atomic_path(copy) as temporary:
            shutil.copyfile(first, temporary)


def report(config: Config, layout: Layout, folder: Path) -> None:
    """Write metrics.json, figures and report.html beside the submission."""
    from .report.summary import summarise

    summarise(config, layout, read_decision(layout), read_json(layout.facts_file))


def predict(config: Config, layout: Layout, source: Path, target: Path) -> np.ndarray:
    """Write `id,label` for the pairs of any file, by the trained ensemble; returns the labels.

    Raises:
        UserError: the ensemble is not trained, or no longer what was tuned, or the file cannot be
            read.
    """
    from .ensemble.finished import finished_run
    from .ensemble.submission import write_submission
    from .training.member import predict_piece

    frame = read_pairs(source, labelled=False).frame
    if not layout.decision_file.is_file():
        raise UserError(
            f"The ensemble of profile '{config.profile}' is not trained (there is no "
            f"{layout.decision_file}). Run first: bash run.sh --profile {config.profile}"
        )
    layout, decision = finished_run(layout.work, layout.results)
    pieces = [(name, fold) for name in layout.members for fold in range(layout.folds)]
    logits: dict[str, list[np.ndarray]] = {name: [] for name in layout.members}
    for name, fold in tqdm(pieces, "predict", unit="model"):
        folder = layout.piece(name, fold)
        logits[name].append(predict_piece(frame, config.paths.pretrained, folder))
    means = {name: np.mean(values, axis=0) for name, values in logits.items()}
    labels = decision.decide(means)
    write_submission(frame, labels, target)
    return labels


def read_decision(layout: Layout):
    """The tuned weights and threshold."""
    from .ensemble.tune import Decision

    return Decision(**read_json(layout.decision_file))


def _save(path: Path, values: np.ndarray) -> None:
    with atomic_path(path) as temporary:
        np.save(temporary, values)
