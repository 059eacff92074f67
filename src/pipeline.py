"""The stages in the order in which the data meets them, and what each reads and writes.

    prepare   validated pair tables
    split     folds over connected components of the question graph
    augment   a training part for each fold
    train     member × fold → weights; out-of-fold, dev and test logits
    tune      Optuna on out-of-fold logits → weights and threshold
    submit    submissions/<run>/submission.csv; but for the sample, also submissions/submission.csv
    report    metrics.json, figures, report.html

A step's inputs are files that earlier steps wrote, so a changed setting makes exactly those steps
run again that depend on it.
"""

import importlib.metadata
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from . import stages
from .config import Config, MemberConfig
from .data.prepare import Sources, find_sources, prepare
from .errors import UserError
from .files import files_in
from .layout import Layout
from .step import Step, exclusive

STAGES = ("prepare", "split", "augment", "train", "tune", "submit", "report")


class Pipeline:
    """All steps of one run."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @cached_property
    def sources(self) -> Sources:
        """The competition files, looked up once."""
        return find_sources(self.config.data)

    @cached_property
    def layout(self) -> Layout:
        """The run's folders."""
        return self._layout(self.sources.is_sample)

    def trained_layout(self) -> Layout:
        """The run whose ensemble predicts: the real one, else the sample's. It needs no data."""
        real, sample = self._layout(is_sample=False), self._layout(is_sample=True)
        if real.decision_file.is_file() or not sample.decision_file.is_file():
            return real
        print("  ! This ensemble was trained on the SAMPLE in data/sample.", file=sys.stderr)
        return sample

    def _layout(self, is_sample: bool) -> Layout:
        # A suffix on the sample, so that a toy never replaces a real run.
        run = self.config.profile + ("-sample" if is_sample else "")
        paths = self.config.paths
        members = tuple(self.config.members)
        return Layout(
            paths.work / run, paths.submissions / run, members, self.config.split.folds
        )

    @property
    def submissions(self) -> list[Path]:
        """Where the submission goes: the run's folder and, unless it is the sample's, the top."""
        targets = [self.layout.results / "submission.csv"]
        if not self.sources.is_sample:
            targets.append(self.config.paths.submissions / "submission.csv")
        return targets

    def run(self, last: str = STAGES[-1]) -> None:
        """Make every step up to and including the stage `last` that is not up to date.

        Another run in the same work folder is waited for: with other settings it would replace
        under our hands what we are about to read.
        """
        if self.config.optuna.storage is not None:
            from .ensemble.tune import check_storage  # here, because optuna is slow to import

            check_storage(self.config.optuna.storage)  # now, not after hours of training
        with exclusive(self.layout.work / ".run.lock", str(self.layout.work)):
            for stage in STAGES[: STAGES.index(last) + 1]:
                for step in self.steps(stage):
                    step.run()

    def train_some(self, member: str | None, fold: int | None) -> None:
        """Train only the pieces of one member, of one fold, or of both.

        Raises:
            UserError: there is no such member or fold.
        """
        if member is not None and member not in self.config.members:
            known = ", ".join(self.config.members)
            raise UserError(f"There is no member '{member}'. Choose one of: {known}.")
        if fold is not None and fold not in range(self.config.split.folds):
            raise UserError(f"There is no fold {fold}: choose 0 to {self.config.split.folds - 1}.")
        self.run("augment")
        for name in self.config.members:
            for number in range(self.config.split.folds):
                if member in (None, name) and fold in (None, number):
                    self._make_piece(name, number)

    def _make_piece(self, name: str, fold: int) -> None:
        start = self.config.members[name].start
        if start is not None:
            self._make_piece(start, fold)
        self._piece(name, fold).run()

    def steps(self, stage: str) -> Iterator[Step]:
        """The steps of a stage; its inputs must have been made."""
        return getattr(self, f"_{stage}")()

    def _prepare(self) -> Iterator[Step]:
        use_dev = self.config.data.use_dev
        yield Step(
            "prepare",
            self.layout.work / "prepare",
            {"use_dev": use_dev, "roles": [role for role, _ in self.sources.roles]},
            [path for _, path in self.sources.roles],
            ["data/pairs.py", "data/graph.py", "data/prepare.py"],
            partial(prepare, self.sources, use_dev),
        )

    def _split(self) -> Iterator[Step]:
        yield Step(
            "split",
            self.layout.folds_file.parent,
            self.config.split.model_dump(),
            self._tables("train"),
            ["data/folds.py", "data/graph.py"],
            partial(stages.split, self.config, self.layout),
        )

    def _augment(self) -> Iterator[Step]:
        for fold in range(self.config.split.folds):
            yield Step(
                f"augment fold {fold}",
                self.layout.part_file(fold).parent,
                self.config.augment.model_dump(exclude={"swap"}) | {"fold": fold},
                [self.layout.folds_file, *self._tables("train", "dev", "test", "external")],
                [
                    "data/training_part.py",
                    "data/augment.py",
                    "data/closure.py",
                    "data/entities.py",
                    "data/lexicon.yaml",
                    "data/graph.py",
                ],
                lambda _, fold=fold: stages.augment(self.config, self.layout, fold),
            )

    def _train(self) -> Iterator[Step]:
        for name in self.config.members:
            for fold in range(self.config.split.folds):
                yield self._piece(name, fold)

    def _piece(self, name: str, fold: int) -> Step:
        start = self.config.members[name].start
        return Step(
            f"train {name} fold {fold}",
            self.layout.piece(name, fold),
            self._piece_settings(self.config.members[name]) | {"fold": fold},
            [
                self.layout.part_file(fold),
                self.layout.folds_file,
                *self._tables("train", "dev", "test"),
                *([self.layout.weights_file(start, fold)] if start else []),
                *files_in(self.config.members[name].encoder),
            ],
            ["models", "training"],
            lambda _: stages.train(self.config, self.layout, name, fold),
            shared=True,
        )

    def _piece_settings(self, member: MemberConfig) -> dict[str, Any]:
        libraries = ("torch", "transformers", "tokenizers")
        return {
            "member": member.model_dump(),
            # A siamese network does not see the order of a pair.
            "swap": self.config.augment.swap if member.architecture == "cross" else 0.0,
            "versions": {name: importlib.metadata.version(name) for name in libraries},
        }

    def _tune(self) -> Iterator[Step]:
        yield Step(
            "tune",
            self.layout.decision_file.parent,
            self.config.tune.model_dump() | {"storage": self.config.optuna.storage},
            [*self._tables("train"), self.layout.folds_file, *self._logits("oof")],
            ["ensemble"],
            partial(stages.tune, self.config, self.layout),
        )

    def _submit(self) -> Iterator[Step]:
        if self.layout.table_file("test").is_file():
            yield Step(
                "submit",
                self.layout.work / "submit",
                {"results": str(self.layout.results)},
                [self.layout.decision_file, *self._tables("test"), *self._logits("test")],
                ["ensemble"],
                lambda _: stages.submit(self.layout, self.submissions),
                delivered=self.submissions,
            )

    def _report(self) -> Iterator[Step]:
        yield Step(
            "report",
            self.layout.work / "report",
            {"results": str(self.layout.results), "config": self.config.model_dump(mode="json")},
            [
                self.layout.facts_file,
                self.layout.decision_file,
                self.layout.cross_fitted_file,
                *(piece / "done.json" for piece in self.layout.pieces),
            ],
            ["report"],
            partial(stages.report, self.config, self.layout),
            delivered=[self.layout.results / name for name in ("metrics.json", "report.html")],
        )

    def _tables(self, *roles: str) -> list[Path]:
        files = map(self.layout.table_file, roles)
        return [file for file in files if file.is_file()]

    def _logits(self, role: str) -> list[Path]:
        return [piece / f"{role}.npy" for piece in self.layout.pieces]
