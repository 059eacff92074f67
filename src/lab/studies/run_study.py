"""Run a study: its parts, its trials, its table."""

import hashlib
import re
from pathlib import Path
from typing import Any

from ...config import Config
from ...data.sources import find_sources
from ...step import exclusive
from .catalogue import load_study
from .tables.differences import all_differences
from .tables.publish import Report, print_table, publish
from .tables.study_table import Row, Trials, column_gaps, make_rows
from .trials.arm import Arm, Column, Design, Study, Workplace
from .trials.budget import choose_budget
from .trials.split_parts import Parts, part_files
from .trials.trial import Places, Trained, parts_step, trial_step


def run_study(name: str, config: Config, quick: bool) -> Path:
    """Make what is missing of a study, print its table and return the folder of its results.

    Raises:
        UserError: there is no such study, or no data.
    """
    study = load_study(name)
    sources = find_sources(config.data)
    # A suffix on all but the ordinary run, so that a glance never replaces it.
    marks = [
        config.profile if config.profile != "small" else "",
        "quick" if quick else "",
        "sample" if sources.is_sample else "",
    ]
    folder = "-".join([name, *filter(None, marks)])
    work = config.paths.work / "study" / folder
    results = config.paths.submissions / "study" / folder
    budget = choose_budget(study.full, config.profile, quick)
    place = Workplace(config, budget, sources.train, sources.dev, work)
    with exclusive(work / ".run.lock", str(work)):
        report = _report(name, study, place, quick)
        publish(report, results)
    print_table(report)
    print(f"results: {results}")
    return results


def _report(name: str, study: Study, place: Workplace, quick: bool) -> Report:
    design = study.design(place)
    parts = {column.name: _make_parts(study, column, place) for column in design.columns}
    trials = _run_trials(name, study, design, place)
    rows = make_rows(study, list(design.arms), parts, trials)
    gaps = column_gaps(list(design.arms), parts, trials)
    config, budget = place.config, place.budget
    evaluated = ", ".join(f"{len(part.evaluation):,} ({column})" for column, part in parts.items())
    size = f"Profile {config.profile}{', --quick' if quick else ''}: {budget}; evaluation pairs: "
    caption = [
        f"{size}{evaluated}.",
        *filter(None, [study.caption]),
        *design.notes,
        *map(str, gaps),
        *_failures(rows),
        "Accuracy: mean over seeds, interval by bootstrap over connected components of questions; "
        "difference to the row marked 'reference' on the same pairs; p by permutation over "
        "components, q adjusted for the number of comparisons (Benjamini-Hochberg). Intervals and "
        "tests are about other questions put to these trained networks; what another training "
        "would have given shows in '± seeds', the standard deviation over seeds. Seconds: of the "
        "processor, all threads together, on a CPU; by the clock on a GPU.",
    ]
    details = {
        "study": name,
        "profile": config.profile,
        "quick": quick,
        "seeds": list(budget.seed_numbers),
        "arms": {arm.name: _settings(arm, place.work) for arm in design.arms},
        "gaps": [vars(gap) for gap in gaps],
    }
    differences = all_differences(design.arms, parts, trials)
    return Report(study.title, rows, differences, caption, details)


def _settings(arm: Arm, work: Path) -> dict[str, Any]:
    """An arm's settings; an encoder made in the work folder is named by its place in there."""
    member = dict(arm.settings["member"])
    encoder = Path(member["encoder"])
    if encoder.is_relative_to(work):
        member["encoder"] = encoder.relative_to(work).as_posix()
    return dict(arm.settings) | {"member": member}


def _failures(rows: list[Row]) -> list[str]:
    """A line about arms whose training failed in some seed, if there are any."""
    shares = {
        f"{row.arm} in '{row.column}'": row.facts["failed"] for row in rows if row.facts["failed"]
    }
    named = ", ".join(f"{arm} ({share:.0%} of the seeds)" for arm, share in shares.items())
    return [f"Training collapsed, scored all the same: {named}."] if shares else []


def _parts_folder(place: Workplace, column: Column, seed: int) -> Path:
    return place.work / "parts" / _slug(column.name) / f"seed{seed}"


def _make_parts(study: Study, column: Column, place: Workplace) -> Parts:
    """The parts of all seeds, made where they are missing; returns those of the first one."""
    settings = {
        "pairs": place.budget.pairs,
        "evaluation": place.budget.evaluation,
    }
    for seed in place.budget.seed_numbers:
        parts_step(study, column, seed, settings, _parts_folder(place, column, seed)).run()
    first = _parts_folder(place, column, place.budget.seed_numbers[0])
    return Parts.read(part_files(first))


def _run_trials(name: str, study: Study, design: Design, place: Workplace) -> Trials:
    """All trials; a seed is finished before the next one begins."""
    plan = [
        (seed, column, arm)
        for seed in place.budget.seed_numbers
        for column in design.columns
        for arm in design.arms
    ]
    trained: dict[tuple[str, str], list[Trained]] = {}
    for number, (seed, column, arm) in enumerate(plan, 1):
        folder = place.work / _slug(column.name) / _slug(arm.name) / f"seed{seed}"
        title = f"{name} {number}/{len(plan)}: {arm.name}, {column.name}, seed {seed}"
        parts = _parts_folder(place, column, seed)
        places = Places(parts, folder, place.config.paths.pretrained)
        trial_step(study, arm, seed, places, title).run()
        trained.setdefault((column.name, arm.name), []).append(Trained(folder))
    return Trials(trained)


def _slug(name: str) -> str:
    """A name as that of a folder; the digits at the end tell apart what reads alike without marks.

    "mean (|u-v|)" → "mean-u-v-1f0c2a".
    """
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return "-".join([*re.findall(r"\w+", name), digest])
