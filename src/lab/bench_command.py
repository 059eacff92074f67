"""`bash run.sh bench` and `bash run.sh bench search`"""

import os
from pathlib import Path

import click

from ..errors import UserError


class Benchmarks(click.Group):
    """Whatever is not `search` is an option or a setting of `speed`."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if not arguments or arguments[0] not in ("search", "--help", "-h"):
            arguments = ["speed", *arguments]
        return super().parse_args(context, arguments)


@click.group(
    cls=Benchmarks, subcommand_metavar="[--json] [--quick] [KEY=VALUE]... | search OUT.json"
)
def command() -> None:
    """Time this project and sentence-transformers, in turns; or, by `search`, its own search."""


@command.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--quick", is_flag=True, help="A random encoder and few pairs, to see it move.")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
def speed(as_json: bool, quick: bool, overrides: tuple[str, ...]) -> None:
    """Time this project and sentence-transformers; under 15 minutes on two cores. The default."""
    for override in overrides:
        if not override.startswith(("data.", "paths.")):
            raise UserError(
                f"{override} would change nothing here: bench takes data.* and paths.* only."
            )
    import json

    from rich.console import Console

    from ..config import load_config
    from .benchmark.benchmark_tables import tables
    from .benchmark.measure import measure
    from .benchmark.scale import Scale

    config = load_config("small", list(overrides), os.environ.get("DATA_DIR"))
    # A glance never replaces a measurement.
    folder = config.paths.submissions / ("bench-quick" if quick else "bench")
    results = measure(config, Scale.load("quick" if quick else "full"), folder)
    if as_json:
        print(json.dumps(results, ensure_ascii=False, indent=2))
    else:
        Console().print(tables(results))


@command.command()
@click.argument("target", metavar="OUT.json", type=click.Path(path_type=Path))
@click.option("--profile", default="small", show_default=True)
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
def search(target: Path, profile: str, overrides: tuple[str, ...]) -> None:
    """Measure search, mining, the vectors and what is exported; seven minutes on two cores.

    Needs a trained run on data with a dev file. Nothing cached is used. Every number is printed as
    it comes and written to OUT.json.
    """
    from ..config import load_config
    from .benchmark.search_benchmark import measure_search

    measure_search(load_config(profile, list(overrides)), target)
