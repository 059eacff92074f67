"""bash run.sh study NAME"""

from inspect import cleandoc

import click

from ..__main__ import load_settings, settings
from .studies.catalogue import studies


@click.command("study")
@click.argument("name", metavar="NAME")
@settings
@click.option("--quick", is_flag=True, help="One seed on a small sample, in minutes.")
def command(name: str, quick: bool, profile: str | None, overrides: tuple[str, ...]) -> None:
    """Rerun a comparison of the article: a table with intervals and paired tests.

    Killed, it continues with the first unfinished trial. NAME is one of:
    """
    from .studies.run_study import run_study

    run_study(name, load_settings(profile, overrides), quick)


_LIST = "\n".join(f"  {name}: {question}" for name, question in studies().items())
command.help = f"{cleandoc(command.help or '')}\n\n\b\n{_LIST}"
