"""Which code a step depends on: what is found, what counts and what does not."""

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from src.fingerprint import code_of
from src.training.fold_model import train_fold_model

FILES = {
    "__init__.py": "",
    "made.py": '''
"""Makes something."""
from .rooms import helper
from .rooms.other import Widget
from . import config
from .rooms import tools

LIMIT = 3

def make(folder):
    """Write it."""
    from .rooms.late import late
    if not folder:
        raise ValueError("there is no folder")
    return helper(LIMIT) + late() + tools.cut() + Widget().size

def make_with(part, folder):
    return part(folder)

def unrelated():
    return 1
''',
    "config.py": "DEFAULT = 1\n",
    "rooms/__init__.py": "from .deep import helper\n",
    "rooms/deep.py": "# why\ndef helper(x):\n    return x\ndef another():\n    return 2\n",
    "rooms/other.py": "class Widget:\n    size = 1\n\nregister = print\nregister('widget')\n",
    "rooms/late.py": "FILE = 'words.yaml'\ndef late():\n    return len(FILE)\n",
    "rooms/tools.py": "def cut():\n    return 1\ndef glue():\n    return 2\n",
    "rooms/words.yaml": "a: 1\n",
    "rooms/unused.py": "def nothing():\n    return 0\n",
}


class Package:
    """A package that can be edited and imported anew."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        self.files = dict(FILES)

    def code(self, pick: Callable | None = None) -> dict[str, str]:
        """`code_of` the package's `make`, or what `pick` makes of the module."""
        self.number += 1
        name = f"package_{self.folder.name}_{self.number}"  # a module is read once a process
        for file, text in self.files.items():
            path = self.folder / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        module = importlib.import_module(f"{name}.made")
        return code_of((pick or (lambda m: m.make))(module), source=self.folder / name)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Package(tmp_path)


def test_it_follows_names_and_imports(package: Package) -> None:
    assert set(package.code()) == {
        "made.py",
        "rooms/deep.py",
        "rooms/other.py",
        "rooms/late.py",
        "rooms/tools.py",
        "rooms/words.yaml",
    }


@pytest.mark.parametrize(
    "file, old, new",
    [
        ("rooms/deep.py", "# why", "# because"),
        ("made.py", '"""Write it."""', '"""Write all of it,\n    whole."""'),
        ("made.py", "there is no folder", "name a folder"),
        ("made.py", "def make(folder):", "def make(folder: str) -> int:"),
        ("made.py", "return 1", "return 7"),
        ("rooms/deep.py", "return 2", "return 3"),
        ("rooms/tools.py", "return 2", "return 3"),
        ("rooms/unused.py", "return 0", "return 9"),
        ("config.py", "DEFAULT = 1", "DEFAULT = 2"),
        ("made.py", "LIMIT = 3", "LIMIT  =  3\n\n"),
    ],
    ids=[
        "comment",
        "docstring",
        "message",
        "types",
        "same file",
        "imported file",
        "attribute",
        "unused",
        "settings",
        "layout",
    ],
)
def test_what_does_not_count(package: Package, file: str, old: str, new: str) -> None:
    before = package.code()
    assert old in package.files[file]
    package.files[file] = package.files[file].replace(old, new)
    assert package.code() == before


@pytest.mark.parametrize(
    "file, old, new",
    [
        ("made.py", "helper(LIMIT)", "helper(LIMIT + 1)"),
        ("made.py", "LIMIT = 3", "LIMIT = 4"),
        ("rooms/deep.py", "return x", "return x + 1"),
        ("rooms/other.py", "size = 1", "size = 2"),
        ("rooms/other.py", "register('widget')", "register('gadget')"),
        ("rooms/late.py", "len(FILE)", "2 * len(FILE)"),
        ("rooms/tools.py", "return 1", "return 5"),
        ("rooms/words.yaml", "a: 1", "a: 2"),
    ],
    ids="function constant imported class effect late attribute file".split(),
)
def test_what_counts_is_named(package: Package, file: str, old: str, new: str) -> None:
    before = package.code()
    assert old in package.files[file]
    package.files[file] = package.files[file].replace(old, new)
    after = package.code()
    assert {name for name in before | after if before.get(name) != after.get(name)} == {file}


def test_functions_among_the_arguments_are_followed(package: Package) -> None:
    found = package.code(lambda module: partial(module.make_with, module.unrelated))
    package.files["made.py"] = package.files["made.py"].replace("return 1", "return 7")
    assert found != package.code(lambda module: partial(module.make_with, module.unrelated))


def test_one_more_entry_of_a_registry_changes_nothing_for_the_others(package: Package) -> None:
    package.files["made.py"] += """
KINDS: Registry[str, int] = {"a": 1}

def chosen(name):
    return KINDS[name]
"""
    package.files["made.py"] = "from src.fingerprint import Registry\n" + package.files["made.py"]
    before = package.code(lambda module: module.chosen)
    package.files["made.py"] = package.files["made.py"].replace('{"a": 1}', '{"a": 1, "b": 2}')
    assert package.code(lambda module: module.chosen) == before


def test_training_depends_on_models_and_training_and_on_nothing_behind_them() -> None:
    found = set(code_of(train_fold_model))
    assert {"training/loop.py", "training/adversarial.py", "models/registry.py"} <= found
    assert {"data/pairs.py", "models/tokens.py"} <= found | {"models/tokens.py"}
    assert not any(name.startswith(("report", "ensemble", "search", "lab")) for name in found)
    assert "step.py" not in found and "pipeline.py" not in found
