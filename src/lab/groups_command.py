"""bash run.sh groups"""

import click

from ..__main__ import load_settings, settings


@click.command("groups")
@settings
def command(profile: str | None, overrides: tuple[str, ...]) -> None:
    """What each part of the rule for groups is worth, cross-fitted, on a finished run."""
    from ..pipeline import Pipeline
    from .groups_worth import print_worth

    config = load_settings(profile, overrides)
    print_worth(config, Pipeline(config).trained_layout())
