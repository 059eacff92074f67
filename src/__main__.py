"""The command line: `bash run.sh COMMAND …`.

Every module is imported by the command that needs it, so that `--help` is there at once.
"""

import difflib
import errno
import io
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import UserError
from .pipeline import STAGES, Pipeline, stage_name
from .step import is_main_process

if TYPE_CHECKING:
    from .config import Config


class Door(click.Group):
    """One list of commands; options or settings without a command are those of `run`."""

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        first = arguments[0] if arguments else "--profile"
        if first not in ("-h", "--help") and (first.startswith("-") or "=" in first):
            arguments = ["run", *arguments]
        return super().parse_args(context, arguments)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(context, arguments[0]) is None:
            near = difflib.get_close_matches(arguments[0], self.list_commands(context), 1, 0.0)
            raise UserError(
                f"There is no command '{arguments[0]}'. The nearest is: bash run.sh {near[0]} "
                "(all of them: bash run.sh --help)."
            )
        return super().resolve_command(context, arguments)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which they are defined


class Laboratory(click.Command):
    """A command of src/lab, which is imported when it is asked for and by nothing else."""

    def make_context(self, info_name: str | None, args: list[str], parent=None, **extra: Any):
        command: click.Command = import_module(f"src.lab.{self.name}_command").command
        return command.make_context(info_name, args, parent, **extra)


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Are two patients' questions the same question? A staged, resumable pipeline.

    `bash run.sh [--profile P] [KEY=VALUE]...` runs everything. Every stage first brings the stages
    before it up to date, and does nothing when it is up to date itself. Settings are changed as
    key=value, such as training.epochs=2; they are listed in src/config.py, their values in
    src/profiles/. `bash run.sh test [PYTEST ARGUMENTS]...` runs the tests, `bash run.sh check`
    formatter, linter and type checker.
    """


def settings(command: Callable) -> Callable:
    """--profile and key=value, which most commands share."""
    command = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")(command)
    return click.option(
        "--profile",
        help="tiny, fast, small or large; by default large on a GPU with 15 GB, else small.",
    )(command)


def load_settings(profile: str | None, overrides: tuple[str, ...]) -> "Config":
    """The configuration of a command that uses what a run has trained.

    Without a profile that is the default one or, where only that is finished, the sample's.
    """
    from .config import DEMO, default_profile, load_config

    names = [profile] if profile else [default_profile(), DEMO]
    configs = [load_config(name, list(overrides), os.environ.get("DATA_DIR")) for name in names]
    finished = [c for c in configs if Pipeline(c).trained_layout().decision_file.is_file()]
    return [*finished, *configs][0]


def open_pipeline(profile: str | None, overrides: tuple[str, ...]) -> Pipeline:
    """The run of a command that makes something; the sample has a profile of minutes."""
    from .config import DEMO, default_profile, load_config

    def opened(name: str) -> Pipeline:
        return Pipeline(load_config(name, list(overrides), os.environ.get("DATA_DIR")))

    pipeline = opened(profile or default_profile())
    return opened(DEMO) if profile is None and pipeline.sources.is_sample else pipeline


@main.command()
@settings
def run(profile: str | None, overrides: tuple[str, ...]) -> None:
    """Everything: from the raw files to the submission and the report."""
    from .report.console import print_run

    pipeline = open_pipeline(profile, overrides)
    if not is_main_process():
        pipeline.run()
        return
    for line in pipeline.outlook():
        print(line, file=sys.stderr, flush=True)
    pipeline.run()
    print_run(pipeline.layout, pipeline.submissions if "test" in pipeline.roles else [])


def _add_stage(stage: Callable) -> None:
    @main.command(stage_name(stage), help=stage.__doc__)
    @settings
    def command(profile: str | None, overrides: tuple[str, ...]) -> None:
        open_pipeline(profile, overrides).run(stage_name(stage))


for _stage in STAGES:  # train and predict, which can do more, take their places below
    _add_stage(_stage)


@main.command()
@settings
@click.option("--member", help="Only this member of the ensemble.")
@click.option("--fold", type=int, help="Only this fold.")
def train(
    profile: str | None, overrides: tuple[str, ...], member: str | None, fold: int | None
) -> None:
    """Train members on folds: all, or some, so that machines can share the work."""
    open_pipeline(profile, overrides).train_some(member, fold)


@main.command()
@click.argument("arguments", nargs=-1, metavar="[INPUT.csv OUTPUT.csv] [KEY=VALUE]...")
@click.option("--profile", help="The run whose ensemble predicts.")
@click.option("--groups", is_flag=True, help="Decide the candidates of a question together.")
@click.option("--force", is_flag=True, help="Replace an OUTPUT.csv that is no submission.")
def predict(arguments: tuple[str, ...], profile: str | None, groups: bool, force: bool) -> None:
    """Decide the pairs of INPUT.csv with the trained ensemble and write id,label to OUTPUT.csv.

    Without files: the stage, which predicts the run's own dev and test.
    """
    files = [Path(text) for text in arguments if "=" not in text or Path(text).exists()]
    overrides = tuple(text for text in arguments if Path(text) not in files)
    if not files and not groups:
        open_pipeline(profile, overrides).run("predict")
        return
    if len(files) != 2:
        raise click.UsageError("Name two files, INPUT.csv and OUTPUT.csv, or none.")
    from .ensemble.predict_file import predict_file

    config = load_settings(profile, overrides)
    layout = Pipeline(config).trained_layout()
    labels = predict_file(config, layout, files[0], files[1], groups, force)
    print(f"{files[1]}: {len(labels)} pairs, {labels.mean():.1%} the same question")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("processes", type=click.IntRange(2), metavar="N")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND...")
def launch(processes: int, command: tuple[str, ...]) -> None:
    """Run a stage, such as train, or all of them in N processes: one a GPU, or all on the CPU.

    They train together; what is no training the first one does alone.
    """
    first = command[0] if command else "run"
    stages = [stage_name(stage) for stage in STAGES]
    if first not in ("run", *stages) and not first.startswith("-") and "=" not in first:
        raise UserError(
            f"'{first}' works in one process: bash run.sh {' '.join(command)}. In several there "
            f"are: run, {', '.join(stages)}."
        )
    from .training.launch import launch_processes

    launch_processes(processes, command)


_FILE = click.Path(path_type=Path)
_TOP = click.IntRange(1, 10_000)
_column = click.option("--column", help="The corpus's column of questions, where it is not found.")


@main.command()
@click.argument("query", required=False)
@click.option("--corpus", type=_FILE, required=True, help="CSV, TSV, JSON, JSONL or plain text.")
@_column
@click.option("--top", type=_TOP, default=5, show_default=True)
@click.option("--rerank", is_flag=True, help="Let the cross-encoder order the candidates.")
@click.option("--interactive", is_flag=True, help="Keep the model loaded, read questions.")
@settings
def search(query: str | None, interactive: bool, profile, overrides, **options):
    """Find the questions of a corpus that are nearest to QUERY."""
    from .search import commands

    if interactive and query and "=" in query:  # a setting, because no question was given
        overrides, query = (query, *overrides), None
    commands.search(load_settings(profile, overrides), query, interactive=interactive, **options)


@main.command()
@click.argument("corpus", type=_FILE)
@_column
@click.option("--top", type=_TOP, default=20, show_default=True)
@settings
def mine(corpus: Path, column: str | None, top: int, **run) -> None:
    """Find the most similar pairs among all questions of a corpus."""
    from .search import commands

    commands.mine(load_settings(**run), corpus, column, top)


@main.command()
@click.argument("corpus", type=_FILE)
@_column
@settings
def cluster(corpus: Path, column: str | None, **run) -> None:
    """Group the questions of a corpus that ask the same."""
    from .search import commands

    commands.clusters(load_settings(**run), corpus, column)


@main.command()
@click.option("--known", type=_FILE, required=True, help="The FAQ's questions.")
@click.option("--asked", type=_FILE, required=True, help="What was asked.")
@click.option("--top", type=_TOP, default=20, show_default=True)
@settings
def faq(known: Path, asked: Path, top: int, **run) -> None:
    """Find what was asked often and an FAQ does not answer."""
    from .search import commands

    commands.faq(load_settings(**run), known, asked, top)


@main.command()
@click.argument("target", metavar="DIR", type=_FILE)
@click.option("--int8", is_flag=True, help="Also write ONNX files with 8-bit weights.")
@settings
def export(target: Path, int8: bool, **run) -> None:
    """Write the models for sentence-transformers and onnxruntime."""
    from .search import commands

    commands.export(load_settings(**run), target, int8)


@main.command()
@click.argument("train_file", metavar="TRAIN.csv", type=_FILE)
@click.argument("evaluation_file", metavar="EVAL.csv", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def audit(train_file: Path, evaluation_file: Path, as_json: bool) -> None:
    """What of EVAL.csv has training already seen?"""
    from .report.console import print_audit

    print_audit(train_file, evaluation_file, as_json)


@main.command()
@click.argument("work_a", type=_FILE)
@click.argument("work_b", type=_FILE)
def compare(work_a: Path, work_b: Path) -> None:
    """Is the run in WORK_A better than the one in WORK_B? A paired test, out of fold."""
    from .report.run_comparison import compare_runs

    print(compare_runs(work_a, work_b))


for _name, _summary in {
    "study": "Rerun a comparison of the article: a table with intervals and paired tests.",
    "groups": "What each part of the rule for groups is worth, on a finished run.",
    "bench": "Time this project and sentence-transformers, in turns.",
    "pretrain": "Continue pre-training the profile's encoders on unlabelled questions.",
    "sample": "Write the sample in data/sample anew.",
}.items():
    main.add_command(Laboratory(_name, help=_summary))


def entry() -> None:
    """Run the command line.

    What the user can mend is one message and exit code 2; Ctrl-C is one line and 130.
    """
    # A character that the console does not have is no reason to lose an hour's work. What is piped
    # in in another encoding is refused where it is used (`Matcher.encode_query`).
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "replace"),
        (sys.stderr, "replace"),
    ):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        main(standalone_mode=False, prog_name="bash run.sh")
    except UserError as error:
        _fail(str(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _fail(
                f"the disk is full ({error.filename or 'while writing'}). What was finished is "
                "kept: free some space and run the same command again."
            )
        # A file that is gone is no place that the user chose badly: that needs a traceback.
        if error.filename is None or isinstance(error, FileNotFoundError):
            raise
        _fail(f"{error.filename}: {error.strerror}. Name another place.")
    except (click.Abort, KeyboardInterrupt):
        print("Interrupted. The same command continues from here.", file=sys.stderr)
        sys.exit(130)


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    entry()
