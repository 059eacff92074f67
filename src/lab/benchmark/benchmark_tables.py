"""The numbers as tables for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from .turns import OURS, THEIRS

Numbers = Mapping[str, Any]


def tables(results: Numbers) -> Iterator[Table]:
    """What `measure` returned, the comparison first."""
    yield _speed(results)
    yield _ratios(results)
    yield _memory(results)
    yield _parts(results)
    yield _accuracy(results)
    yield _growth(results)
    yield _stages(results)
    yield _large(results)


def spread(values: Mapping[str, float], digits: int = 2) -> str:
    """`median (low–high)`."""
    median, low, high = (f"{values[name]:,.{digits}f}" for name in ("median", "low", "high"))
    return f"{median} ({low}–{high})"


def per_cent(values: Mapping[str, float]) -> str:
    """`median (low–high) %`."""
    return spread({name: 100 * value for name, value in values.items()}, 0) + " %"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(columns[0])
    for name in columns[1:]:
        table.add_column(name, justify="right")
    return table


def _speed(results: Numbers) -> Table:
    table = _table(
        f"Speed, encoder {results['encoder']}: median and range of {results['rounds']} rounds",
        "",
        "pairs/s",
        "tokens/s",
        "of the peak",
    )
    for subject, found in results["speed"].items():
        table.add_section()
        table.add_row(subject, style="bold")
        for name, rates in found["contenders"].items():
            table.add_row(
                f"  {name}",
                spread(rates["pairs_per_s"], 0),
                spread(rates["tokens_per_s"], 0),
                per_cent(rates["share_of_peak"]),
            )
    peaks = results["peak_flops"].items()
    table.caption = "Peak of a matrix product: " + ", ".join(
        f"{kind} {spread({k: v / 1e9 for k, v in values.items()}, 0)} GFLOP/s"
        for kind, values in peaks
    )
    return table


def _ratios(results: Numbers) -> Table:
    table = _table("Pairs a second: this project / the other", "", "ratio")
    for subject, found in results["speed"].items():
        table.add_section()
        for name, ratio in found["ratios"].items():
            table.add_row(f"{subject}: {name}", spread(ratio))
    return table


def _memory(results: Numbers) -> Table:
    where = "resident" if results["machine"]["gpu"] is None else "allocated on the GPU"
    table = _table(f"Peak memory of training, {where}, GB", "", OURS, THEIRS, "ratio")
    for name, memory in results["memory_gb"].items():
        ours, theirs = memory[OURS], memory[THEIRS]
        table.add_row(name, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.2f}")
    return table


def _parts(results: Numbers) -> Table:
    names = list(results["step"])
    table = _table("A training step", "", *names)
    rows = {
        "encoder forward and backward, of the peak": "encoder_share_of_peak",
        "clipping and AdamW, of the step": "update_share",
    }
    for title, key in rows.items():
        table.add_row(title, *(per_cent(results["step"][name][key]) for name in names))
    for attack, title in (("fgm", "FGM"), ("pgd", "PGD, 3 steps")):
        costs = (spread(results["attacks"][name][attack]) for name in names)
        table.add_row(f"{title}, × a clean epoch", *costs)
    return table


def _accuracy(results: Numbers) -> Table:
    found = results["accuracy"]
    if found is None:
        table = _table("Accuracy on dev", "")
        table.add_row("not measured: there is no dev file")
        return table
    table = _table(
        f"Accuracy on dev, bi-encoder, trained on {found['pairs']} pairs", "", "by seed, %"
    )
    for name, values in found["accuracy"].items():
        table.add_row(name, ", ".join(f"{100 * value:.2f}" for value in values))
    low, high = (f"{100 * end:+.2f}" for end in found["interval"])
    table.add_row(
        "difference of the means, points (95 %: dev's components, these networks)",
        f"{100 * found['difference']:+.2f} ({low} to {high})",
    )
    return table


def _growth(results: Numbers) -> Table:
    table = _table("Seconds of an epoch, bi-encoder", "", OURS, THEIRS)
    for kind, rows in results["growth"].items():
        table.add_section()
        for row in rows:
            seconds = (spread(row["seconds"][library]) for library in (OURS, THEIRS))
            work = f"{row['pairs']} pairs, {row['tokens']:.1f} tokens a question"
            table.add_row(f"{row['factor']}× {kind}: {work}", *seconds)
    return table


def _stages(results: Numbers) -> Table:
    table = _table("Waiting, seconds", "", "s")
    table.add_row("python -m src --help", spread(results["start_up_s"]))
    for stage, seconds in results["stages_s"].items():
        table.add_row(f"{stage} (profile tiny, sample)", f"{seconds:.1f}")
    table.add_row("this benchmark", f"{results['seconds']}")
    return table


def _large(results: Numbers) -> Table:
    large = results["large"]
    if large is None:
        table = _table("Large encoder on a GPU", "")
        table.add_row("not measured: there is no CUDA GPU here")
        return table
    title = f"Large encoder, cross-encoder training, {large['precision']}"
    table = _table(title, "", "tokens/s", "of the peak")
    for name, rates in large.items():
        if isinstance(rates, Mapping) and "tokens_per_s" in rates:
            table.add_row(name, spread(rates["tokens_per_s"], 0), per_cent(rates["share_of_peak"]))
    table.add_row(f"ratio of pairs/s {spread(large['ratio'])}")
    for attack, cost in large["attacks"].items():
        table.add_row(f"{attack}, × a clean epoch {spread(cost)}")
    return table
