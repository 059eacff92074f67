"""The studies by name: one file on_NAME.py each, imported only when it is run."""

import ast
from importlib import import_module
from pathlib import Path

from ...errors import UserError
from .trials.arm import Study


def studies() -> dict[str, str]:
    """Name and question of every study: the first line of its file."""
    found = {}
    for file in sorted(Path(__file__).parent.glob("on_*.py")):
        text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        found[file.stem.removeprefix("on_")] = text.splitlines()[0]
    return found


def load_study(name: str) -> Study:
    """The study of that name.

    Raises:
        UserError: there is none.
    """
    if name not in studies():
        raise UserError(f"There is no study '{name}'. Choose one of: {', '.join(studies())}.")
    return import_module(f".on_{name}", __package__).STUDY
