"""The command line: `python -m src STAGE [--profile P] [key=value ...]`."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from .errors import UserError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Are two patients' questions the same question? A staged, resumable pipeline.

    Every stage first brings the stages before it up to date, and does nothing when it is up to
    date itself. Settings are changed as key=value, such as training.epochs=2; they are listed
    in src/config.py, their values in src/profiles/.
    """


def _settings(command: Callable) -> Callable:
    """--profile and key=value, which all stages share."""
    command = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")(command)
    return click.option(
        "--profile",
        help="tiny, fast, small or large; by default large on a GPU with 15 GB, else small.",
    )(command)


def _pipeline(profile: str | None, overrides: tuple[str, ...]):
    from .config import load_config
    from .pipeline import Pipeline

    return Pipeline(
        load_config(profile or _default_profile(), list(overrides), os.environ.get("DATA_DIR"))
    )


def _default_profile() -> str:
    """`large` where a CUDA GPU with 15 GB or more is present, else `small`."""
    import torch

    if torch.cuda.is_available() and torch.cuda.get_device_properties(0).total_memory >= 15e9:
        return "large"
    return "small"


def _add_stage(name: str, summary: str) -> None:
    @main.command(name, help=summary)
    @_settings
    def stage(profile: str | None, overrides: tuple[str, ...]) -> None:
        _pipeline(profile, overrides).run(name)


_add_stage("prepare", "Read and validate the competition files; audit them for leaks.")
_add_stage("split", "Assign training rows to folds over connected components.")
_add_stage("augment", "Write each fold's training part.")


@main.command()
@_settings
@click.option("--member", help="Only this member of the ensemble.")
@click.option("--fold", type=int, help="Only this fold.")
def train(
    profile: str | None, overrides: tuple[str, ...], member: str | None, fold: int | None
) -> None:
    """Train members on folds: all, or one piece, so that machines can share the work."""
    _pipeline(profile, overrides).train_some(member, fold)


_add_stage("tune", "Search weights and threshold on out-of-fold predictions.")
_add_stage("submit", "Decide the test file and write the submission.")
_add_stage("report", "Write metrics.json, figures and report.html.")


@main.command()
@_settings
def run(profile: str | None, overrides: tuple[str, ...]) -> None:
    """Everything: from the raw files to the submission and the report."""
    from rich.console import Console

    from .files import read_json
    from .report.console import console_summary

    pipeline = _pipeline(profile, overrides)
    pipeline.run()
    results = pipeline.layout.results
    console = Console()
    console.print(console_summary(read_json(results / "metrics.json")))
    print(f"report:     {results / 'report.html'}")
    if pipeline.sources.test is None:
        print("submission: none, because there is no test file. Put test.csv beside train.csv and")
        print("            run the same command: only the missing steps are made.")
    else:
        print(f"submission: {pipeline.submissions[-1]}")


@main.command()
@click.argument("source", metavar="INPUT.csv", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUTPUT.csv", type=click.Path(path_type=Path))
@_settings
def predict(source: Path, target: Path, profile: str | None, overrides: tuple[str, ...]) -> None:
    """Decide the pairs of INPUT.csv with the trained ensemble; write id,label."""
    from .stages import predict as predict_file

    pipeline = _pipeline(profile, overrides)
    labels = predict_file(pipeline.config, pipeline.trained_layout(), source, target)
    print(f"{target}: {len(labels)} pairs, {labels.mean():.1%} the same question")


_FILE = click.Path(path_type=Path)
_TOP = click.IntRange(1, 10_000)


@main.command()
@click.argument("query", required=False)
@click.option("--corpus", type=_FILE, required=True, help="CSV, TSV, JSONL or plain text.")
@click.option("--top", type=_TOP, default=5, show_default=True)
@click.option("--rerank", is_flag=True, help="Let the cross-encoder order the candidates.")
@click.option("--interactive", is_flag=True, help="Keep the model loaded, read questions.")
@_settings
def search(
    query: str | None, corpus: Path, top: int, rerank: bool, interactive: bool, **run
) -> None:
    """Find the questions of a corpus that are nearest to QUERY."""
    from .search import commands

    if interactive and query and "=" in query:  # a setting, because no question was given
        run["overrides"], query = (query, *run["overrides"]), None
    commands.search(_pipeline(**run).config, query, corpus, top, rerank, interactive)


@main.command()
@click.argument("corpus", type=_FILE)
@click.option("--top", type=_TOP, default=20, show_default=True)
@_settings
def mine(corpus: Path, top: int, **run) -> None:
    """Find the most similar pairs among all questions of a corpus."""
    from .search import commands

    commands.mine(_pipeline(**run).config, corpus, top)


@main.command()
@click.argument("corpus", type=_FILE)
@_settings
def cluster(corpus: Path, **run) -> None:
    """Group the questions of a corpus that ask the same."""
    from .search import commands

    commands.clusters(_pipeline(**run).config, corpus)


@main.command()
@click.option("--known", type=_FILE, required=True, help="The FAQ's questions.")
@click.option("--asked", type=_FILE, required=True, help="What was asked.")
@click.option("--top", type=_TOP, default=20, show_default=True)
@_settings
def faq(known: Path, asked: Path, top: int, **run) -> None:
    """Find what was asked often and an FAQ does not answer."""
    from .search import commands

    commands.faq(_pipeline(**run).config, known, asked, top)


@main.command()
@click.argument("target", metavar="DIR", type=_FILE)
@click.option("--int8", is_flag=True, help="Also write ONNX files with 8-bit weights.")
@_settings
def export(target: Path, int8: bool, **run) -> None:
    """Write the models for sentence-transformers and onnxruntime."""
    from .search import commands

    commands.export(_pipeline(**run).config, target, int8)


@main.command()
@_settings
def pretrain(**run) -> None:
    """Continue pre-training the profile's encoders on the unlabelled questions.

    Not part of `run`: name the directory that it prints as a member's encoder to use it. The
    settings are pretrain.epochs, pretrain.learning_rate and so on. Questions of dev are left out.
    """
    from .lab.pretraining.pretrain import pretrain_encoders

    pretrain_encoders(_pipeline(**run))


@main.command()
@click.argument("name", metavar="NAME")
@_settings
@click.option("--quick", is_flag=True, help="One seed on a small sample, in minutes.")
def study(name: str, quick: bool, **run) -> None:
    """Rerun a comparison of the article: a table with intervals and paired tests.

    \b
    NAME is one of: article, leak, pooling, objective, encoder, backbone, adversarial, augmentation.
    Killed, it continues with the first unfinished trial.
    """
    from .lab.studies.run_study import run_study

    run_study(name, _pipeline(**run).config, quick)


@main.command()
@click.argument("train_file", metavar="TRAIN.csv", type=click.Path(path_type=Path))
@click.argument("evaluation_file", metavar="EVAL.csv", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def audit(train_file: Path, evaluation_file: Path, as_json: bool) -> None:
    """What of EVAL.csv has training already seen?"""
    import json

    from .data.graph import audit as compare
    from .data.pairs import read_pairs

    result = compare(
        read_pairs(train_file, labelled=False).frame,
        read_pairs(evaluation_file, labelled=False).frame,
    )
    if as_json:
        print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        from .report.console import audit_table

        Console().print(audit_table(result))


@main.command()
@click.argument("work_a", type=click.Path(path_type=Path))
@click.argument("work_b", type=click.Path(path_type=Path))
def compare(work_a: Path, work_b: Path) -> None:
    """Is the run in WORK_A better than the one in WORK_B? A paired test, out of fold."""
    from .report.run_comparison import compare_runs

    print(compare_runs(work_a, work_b))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--quick", is_flag=True, help="A random encoder and few pairs, to see it move.")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
def bench(as_json: bool, quick: bool, overrides: tuple[str, ...]) -> None:
    """Time this project and sentence-transformers, in turns; under 15 minutes on two cores."""
    import json

    from .config import load_config
    from .lab.benchmark.measure import FULL, QUICK, measure

    for override in overrides:
        if not override.startswith(("data.", "paths.")):
            raise UserError(
                f"{override} would change nothing here: bench takes data.* and paths.* only."
            )
    config = load_config("small", list(overrides), os.environ.get("DATA_DIR"))
    # A glance never replaces a measurement.
    folder = config.paths.submissions / ("bench-quick" if quick else "bench")
    results = measure(config, QUICK if quick else FULL, folder)
    if as_json:
        print(json.dumps(results, ensure_ascii=False, indent=2))
    else:
        from rich.console import Console

        from .lab.benchmark.benchmark_tables import tables

        for table in tables(results):
            Console().print(table)


def entry() -> None:
    """Run the command line.

    What the user can mend is one message and exit code 2; Ctrl-C is one line and 130.
    """
    try:
        main(standalone_mode=False)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            # A file that is gone is no place that the user chose badly: that needs a traceback.
            if error.filename is None or isinstance(error, FileNotFoundError):
                raise
            said = f"error: {error.filename}: {error.strerror}. Name another place."
            print(said, file=sys.stderr)
            sys.exit(2)
        print(
            f"error: the disk is full ({error.filename or 'while writing'}). What was finished is "
            "kept: free some space and run the same command again.",
            file=sys.stderr,
        )
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("Interrupted. The same command continues from here.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    entry()
