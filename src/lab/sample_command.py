"""`bash run.sh sample`"""

from pathlib import Path

import click


@click.command()
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path | None) -> None:
    """Write train.csv, dev.csv and test.csv anew, to FOLDER or to data/sample.

    The committed files are what this writes; a test compares their bytes.
    """
    from ..data.sources import SAMPLE
    from .sample.sample_tables import write_tables

    for line in write_tables(folder or SAMPLE):
        print(line)
