"""`bash run.sh pretrain`"""

import click

from ..__main__ import open_pipeline, settings


@click.command()
@settings
def command(**run) -> None:
    """Continue pre-training the profile's encoders on the unlabelled questions.

    Not part of `run`: name the directory that it prints as a member's encoder to use it. The
    settings are pretrain.epochs, pretrain.learning_rate and so on. Questions of dev are left out.
    """
    from .pretraining.pretrain import pretrain_encoders

    pretrain_encoders(open_pipeline(**run))
