"""The way of a pair from train.csv to submission.csv: the stages, in the order of the data.

    train.csv, dev.csv, test.csv
       └ prepare         validated pair tables; leak audit of train → dev
       └ split           folds over connected components of the question graph
       └ training-part   what a fold's models train on: the other folds' rows, plus augmentation
       └ train           member × fold → weights, and the logits of the fold's own rows
       └ predict         weights × table → logits of dev, test and candidates among themselves
       └ tune            Optuna on out-of-fold logits → member weights, threshold, group rule
       └ submit          submissions/<run>/submission.csv, copied to submissions/submission.csv
       └ report          metrics.json, figures, report.html

A stage is one function: its name and summary are those of the command, and its steps say what is
read, which settings count, and what makes the result (step.py: a step is made once, and again only
when one of these changes). A new stage is a function here and a line in `STAGES`. The imports are
inside the functions so that `--help` need not wait for torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import UserError
from .files import files_in, read_json, write_json
from .layout import Layout
from .step import Step, exclusive, launched_processes

if TYPE_CHECKING:
    from .config import Config
    from .data.sources import Sources
    from .training.fold_model import FoldFiles


def prepare(run: Pipeline) -> Iterator[Step]:
    """Read and validate the competition files; audit them for leaks."""
    from .data.prepare import write_tables

    use_dev = run.config.data.use_dev
    yield Step(
        "prepare",
        run.layout.work / "prepare",
        partial(write_tables, run.sources, use_dev),
        reads=[path for _, path in run.sources.roles],
        settings={"use_dev": use_dev, "roles": [role for role, _ in run.sources.roles]},
    )


def split(run: Pipeline) -> Iterator[Step]:
    """Assign training rows to folds over connected components."""
    from .data.folds import write_folds

    table = run.layout.table_file("train")
    yield Step(
        "split",
        run.layout.folds_file.parent,
        partial(write_folds, table, run.config.split),
        reads=[table],
        settings=run.config.split.model_dump(),
    )


def training_part(run: Pipeline) -> Iterator[Step]:
    """Write what each fold is trained on: the other folds' rows and what is derived from them."""
    from .data.training_part import write_training_part

    # dev and test of the moment are kept out of training, but do not count: one that comes later,
    # or in their place, is predicted by the weights that are there (see report/summary.py).
    tables = {role: run.layout.table_file(role) for role in run.roles}
    counted = [tables[role] for role in ("train", "external") if role in tables]
    for fold in range(run.config.split.folds):
        yield Step(
            f"training-part fold {fold}",
            run.layout.training_part_file(fold).parent,
            partial(write_training_part, tables, run.layout.folds_file, fold, run.config.augment),
            reads=[run.layout.folds_file, *counted],
            settings=run.config.augment.model_dump(exclude={"swap"}) | {"fold": fold},
        )


def train(run: Pipeline) -> Iterator[Step]:
    """Train members on folds."""
    for name, fold in run.layout.members_and_folds:
        yield _train_on(run, name, fold)


def _train_on(run: Pipeline, name: str, fold: int) -> Step:
    from .models.registry import code_of_member
    from .training.fold_model import train_fold_model
    from .training.objective import Objective

    member, layout, files = run.config.members[name], run.layout, run.fold_files(fold)
    start = layout.weights_file(member.start, fold) if member.start else None
    # A siamese network does not see the order of a pair.
    swap = run.config.augment.swap if member.architecture == "cross" else 0.0
    return Step(
        f"train {name} fold {fold}",
        layout.fold_model(name, fold),
        partial(train_fold_model, member, files, swap, run.config.paths.pretrained, start),
        reads=[*files.paths, *([start] if start else []), *files_in(member.encoder)],
        settings={"member": member.model_dump(), "swap": swap, "fold": fold} | _libraries(),
        code=[*code_of_member(member), *Objective.of(member).code],
        superseded=layout.work / "superseded" / "train" / name / f"fold{fold}",
        shared=True,
    )


def predict(run: Pipeline) -> Iterator[Step]:
    """Predict dev, test and the candidates of groups with the weights of every member and fold."""
    from .ensemble.logits import write_candidate_logits, write_logits
    from .models.registry import code_of_member

    layout, pretrained = run.layout, run.config.paths.pretrained
    roles = [role for role in ("dev", "test") if role in run.roles]
    tables: dict[str, Path] = {role: layout.table_file(role) for role in roles}
    for name, fold in layout.members_and_folds:
        weights, code = layout.weights_file(name, fold), code_of_member(run.config.members[name])
        for role, table in tables.items():
            yield Step(
                f"predict {role} by {name} fold {fold}",
                layout.logits_file(name, fold, role).parent,
                partial(write_logits, weights.parent, pretrained, table),
                reads=[weights, table],
                settings=_libraries(),
                code=code,
            )
        if name not in layout.bi_encoders:
            continue
        for role, table in {"oof": layout.table_file("train"), **tables}.items():
            own = (layout.folds_file, fold) if role == "oof" else None
            yield Step(
                f"predict candidates of {role} by {name} fold {fold}",
                layout.logits_file(name, fold, f"{role}-candidates").parent,
                partial(write_candidate_logits, weights.parent, pretrained, table, own),
                reads=[weights, table, *([layout.folds_file] if own else [])],
                settings=_libraries() | {"fold": fold if own else None},
                code=code,
            )


def tune(run: Pipeline) -> Iterator[Step]:
    """Search weights, threshold and group rule on out-of-fold predictions."""
    from .ensemble.tune import write_decision

    layout, optuna = run.layout, run.config.optuna
    yield Step(
        "tune",
        layout.decision_file.parent,
        partial(write_decision, run.config, layout),
        reads=[
            layout.table_file("train"),
            layout.folds_file,
            *layout.logits_files("oof", "oof-candidates"),
            *(model / "member.json" for model in layout.fold_models),
        ],
        settings=run.config.tune.model_dump() | {"storage": optuna.storage},
    )


def submit(run: Pipeline) -> Iterator[Step]:
    """Decide the test file and write the submission."""
    from .ensemble.submission import submit_test

    if "test" not in run.roles:
        return
    layout, setting = run.layout, run.config.ensemble
    both = {way: layout.results / f"submission.{way}.csv" for way in ("pairs", "groups")}
    yield Step(
        "submit",
        layout.choice_file.parent,
        partial(submit_test, layout, setting, both, run.submissions),
        reads=[
            layout.decision_file,
            layout.cross_fitted_file,
            layout.table_file("train"),
            layout.table_file("test"),
            *layout.logits_files("test", "test-candidates"),
        ],
        settings=setting.model_dump() | {"results": str(layout.results)},
        delivers=[*both.values(), *run.submissions],
    )


def report(run: Pipeline) -> Iterator[Step]:
    """Write metrics.json, figures and report.html."""
    from .report.summary import summarise

    layout = run.layout
    parts = [layout.training_part_file(fold) for fold in range(layout.folds)]
    dev = layout.logits_files("dev", "dev-candidates") if "dev" in run.roles else []
    choice = [layout.choice_file] if "test" in run.roles else []
    earlier = STAGES[: STAGES.index(report)]
    folders = {stage_name(stage): [step.folder for step in stage(run)] for stage in earlier}
    yield Step(
        "report",
        layout.work / "report",
        partial(summarise, run.config, layout, folders),
        reads=[
            layout.facts_file,
            *parts,
            layout.decision_file,
            layout.cross_fitted_file,
            *(model / "done.json" for model in layout.fold_models),
            *layout.logits_files("oof-candidates"),
            *dev,
            *choice,
        ],
        settings={"results": str(layout.results), "config": run.config.model_dump(mode="json")},
        delivers=[layout.results / name for name in ("metrics.json", "report.html")],
    )


STAGES: tuple[Callable[[Pipeline], Iterator[Step]], ...] = (
    prepare,
    split,
    training_part,
    train,
    predict,
    tune,
    submit,
    report,
)


def stage_name(stage: Callable) -> str:
    """The command's name: "training-part"."""
    return stage.__name__.replace("_", "-")


def _libraries() -> dict[str, Any]:
    from importlib.metadata import version

    return {"versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")}}


class Pipeline:
    """One run: its settings, its files, and the stages made in order."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @cached_property
    def sources(self) -> Sources:
        """The competition files, looked up once."""
        from .data.sources import find_sources

        return find_sources(self.config.data)

    @cached_property
    def layout(self) -> Layout:
        """The run's folders."""
        return self._layout(self.sources.is_sample)

    @cached_property
    def roles(self) -> list[str]:
        """The tables that `prepare` writes, in order: train, dev, test, external."""
        joined = self.config.data.use_dev == "train"
        return [role for role, _ in self.sources.roles if not (role == "dev" and joined)]

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
        members = self.config.members
        bi_encoders = tuple(n for n, member in members.items() if member.architecture == "siamese")
        folders = paths.work / run, paths.submissions / run
        return Layout(*folders, tuple(members), bi_encoders, self.config.split.folds)

    @property
    def submissions(self) -> list[Path]:
        """Where the submission goes: the run's folder and, unless it is the sample's, the top."""
        targets = [self.layout.results / "submission.csv"]
        if not self.sources.is_sample:
            targets.append(self.config.paths.submissions / "submission.csv")
        return targets

    def run(self, last: str = "report") -> None:
        """Make every step up to and including the stage `last` that is not up to date.

        Another run in the same work folder is waited for: with other settings it would replace
        under our hands what we are about to read.
        """
        if self.config.optuna.storage is not None:
            from .ensemble.tune import check_storage

            check_storage(self.config.optuna.storage)  # now, not after hours of training
        names = [stage_name(stage) for stage in STAGES]
        stages = STAGES[: names.index(last) + 1]
        with exclusive(self.layout.work / ".run.lock", str(self.layout.work)):
            for line in self.changes(stages):
                print(line, file=sys.stderr, flush=True)
            for stage in stages:
                steps = list(stage(self))
                if stage is train:
                    self._plan_training()
                for step in steps:
                    step.run()

    def outlook(self) -> Iterator[str]:
        """What a run will do and where its results will be, before it begins."""
        members, folds = self.config.members, self.config.split.folds
        yield f"── profile {self.config.profile}: {len(members)} member(s) × {folds} folds"
        yield f"── data:    {self.sources.read} in {self.sources.train.parent}"
        if self.sources.not_read:
            yield f"── not read: {', '.join(self.sources.not_read)}"
        yield f"── results: {self.layout.results}"

    def fold_files(self, fold: int) -> FoldFiles:
        """What the models of a fold are trained on."""
        from .training.fold_model import FoldFiles

        layout = self.layout
        return FoldFiles(
            layout.training_part_file(fold), layout.table_file("train"), layout.folds_file, fold
        )

    def _plan_training(self) -> None:
        """Print, and keep for the report, what the training that is due will take here.

        Raises:
            UserError: memory or disk will not do.
        """
        from .training.plan import make_plan, refuse_full_disk

        processes = launched_processes()
        if processes:  # a trial of one process would say nothing of all together
            if processes.is_main_process:
                print(f"── training in {processes.num_processes} processes", file=sys.stderr)
            return
        plans = []
        for name, member in self.config.members.items():
            steps = {fold: _train_on(self, name, fold) for fold in range(self.config.split.folds)}
            due = [self.fold_files(fold) for fold, step in steps.items() if not step.is_current()]
            if due:
                plans.append(make_plan(name, member, due, self.config.paths.pretrained))
        if not plans:
            return
        minutes = sum(plan.seconds for plan in plans) / 60
        print(f"── training takes about {minutes:.1f} minutes here", file=sys.stderr)
        for plan in plans:
            print(f"──    {plan}", file=sys.stderr, flush=True)
        refuse_full_disk(plans, self.layout.work)
        known = read_json(self.layout.plan_file) if self.layout.plan_file.is_file() else {}
        write_json(self.layout.plan_file, known | {plan.member: asdict(plan) for plan in plans})

    def changes(self, stages: tuple[Callable, ...] = STAGES) -> Iterator[str]:
        """What was made before and will be made again, a line a step, and why."""
        remade: dict[Path, str] = {}
        for stage in stages:
            for step in stage(self):
                why = step.changes(remade)
                if why is not None:
                    if not remade:
                        yield "── something has changed (what follows is made again if it differs):"
                    remade[step.folder] = step.name
                    yield f"──    {step.name}: {why}"

    def train_some(self, member: str | None, fold: int | None) -> None:
        """Train only the models of one member, of one fold, or of both.

        Raises:
            UserError: there is no such member or fold.
        """
        if member is not None and member not in self.config.members:
            known = ", ".join(self.config.members)
            raise UserError(f"There is no member '{member}'. Choose one of: {known}.")
        if fold is not None and fold not in range(self.config.split.folds):
            raise UserError(f"There is no fold {fold}: choose 0 to {self.config.split.folds - 1}.")
        self.run(stage_name(STAGES[STAGES.index(train) - 1]))
        for name in self.config.members:
            for number in range(self.config.split.folds):
                if member in (None, name) and fold in (None, number):
                    self._train_one(name, number)

    def _train_one(self, name: str, fold: int) -> None:
        start = self.config.members[name].start
        if start is not None:
            self._train_one(start, fold)
        _train_on(self, name, fold).run()
