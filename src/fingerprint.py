"""Which code of this project a function depends on, found by following its names and imports.

A name is followed as the source spells it: to a function, class or constant of the same file, or
through an import, at the top of the file or inside a function, to another file under src/. What is
found counts without its comments, docstrings, types and the texts of errors, so that none of these
makes anybody train again. A string that names a file beside the module (a lexicon, a template)
counts with that file's content. Settings count by their values, not by config.py, which declares
them.
"""

import ast
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

SOURCE = Path(__file__).parent
_NOT_FOLLOWED = ("config.py", "errors.py")

# A dictionary of what can be chosen by name. Its entries are not followed, so that one more of them
# changes nothing for the others: a step names the ones that it has chosen (Step.code). It is found
# by its annotation, `NAME: Registry[...]`.
Registry = dict

Symbol = tuple[Path, str]  # a name in a file; "*" stands for all of it


def code_of(*functions: Callable, source: Path = SOURCE) -> dict[str, str]:
    """SHA-256 of what `functions` depend on, by file (as in "models/siamese.py").

    Functions among the arguments of a `functools.partial` are followed, too.

    Args:
        source: the package that is followed; what lies outside is a library.
    """
    return _closure(
        frozenset(s for function in functions for s in _roots(function, source)), source
    )


@cache  # many steps are made by the same functions
def _closure(roots: frozenset[Symbol], source: Path) -> dict[str, str]:
    waiting = list(roots)
    seen: set[Symbol] = set()
    found: dict[Path, set[str]] = {}
    while waiting:
        symbol = waiting.pop()
        if symbol in seen:
            continue
        seen.add(symbol)
        path, name = symbol
        module = _read(path)
        for statement in module.statements(name):
            found.setdefault(path, set()).add(ast.unparse(statement))
            waiting += _followed(statement, module, source)
            for file in _named_files(statement, path):
                found[file] = {hashlib.sha256(file.read_bytes()).hexdigest()}
    return {
        path.relative_to(source).as_posix(): _sha256("\n".join(sorted(texts)))
        for path, texts in sorted(found.items())
    }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _roots(function: object, source: Path) -> Iterator[Symbol]:
    if isinstance(function, partial):
        for part in (function.func, *function.args, *function.keywords.values()):
            yield from _roots(part, source)
    elif callable(function) and hasattr(function, "__qualname__"):
        path = Path(getattr(sys.modules[function.__module__], "__file__", None) or "")
        if path.is_relative_to(source):
            yield path, function.__qualname__.split(".")[0]


@dataclass(frozen=True)
class _Module:
    """A source file by its top-level names.

    Attributes:
        imports: local name → (module, name in it), both as the source spells them.
        effects: statements that define no name, such as a registration; they always count.
    """

    path: Path
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    effects: list[ast.stmt] = field(default_factory=list)

    def statements(self, name: str) -> list[ast.stmt]:
        """What a name stands for, and what happens when its file is imported."""
        if name == "*":
            return [s for group in self.definitions.values() for s in group] + self.effects
        return self.definitions.get(name, []) + self.effects


@cache
def _read(path: Path) -> _Module:
    module = _Module(path)
    tree = _Stripped().visit(ast.parse(path.read_bytes()))
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            module.imports.update(_imported(statement))
            continue
        names = _defined(statement)
        annotation = getattr(statement, "annotation", None)
        is_registry = annotation is not None and ast.unparse(annotation).startswith("Registry[")
        for name in names:
            entries = [] if is_registry else [statement]
            module.definitions.setdefault(name, []).extend(entries)
        if not names:
            module.effects.append(statement)
    return module


class _Stripped(ast.NodeTransformer):
    """Leaves out docstrings, what is said when something is raised, and the types of arguments."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(arg=node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return ast.Pass() if text else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise(exc=None, cause=None)


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    return [n.id for t in targets if t for n in ast.walk(t) if isinstance(n, ast.Name)]


def _imported(statement: ast.stmt) -> dict[str, tuple[str, str, int]]:
    if isinstance(statement, ast.ImportFrom):
        origin = statement.module or ""
        return {a.asname or a.name: (origin, a.name, statement.level) for a in statement.names}
    return {}  # `import x` is a library's; this project imports its own by `from`


def _followed(statement: ast.stmt, module: _Module, source: Path) -> Iterator[Symbol]:
    """The names that a statement uses, where they are defined under `source`."""
    local = dict(module.imports)
    nodes = list(ast.walk(statement))
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            local.update(_imported(node))
    attributes: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes.setdefault(node.value.id, set()).add(node.attr)
    for name in {node.id for node in nodes if isinstance(node, ast.Name)}:
        if name in module.definitions:
            yield module.path, name
        elif name in local:
            for attribute in attributes.get(name, {"*"}):
                yield from _resolve(*local[name], module.path, source, attribute)


def _resolve(
    origin: str, name: str, level: int, importer: Path, source: Path, attribute: str
) -> Iterator[Symbol]:
    """Where `from origin import name` leads; of a module, `attribute` is what is used."""
    folder = importer.parents[level - 1] if level else source.parent
    target = folder.joinpath(*origin.split(".")) if origin else folder
    file = target / "__init__.py" if target.is_dir() else target.with_suffix(".py")
    if (target / f"{name}.py").is_file():
        file, name = target / f"{name}.py", attribute
    if not file.is_file() or not file.is_relative_to(source) or file.name in _NOT_FOLLOWED:
        return
    passed_on = _read(file).imports.get(name)
    if passed_on:
        yield from _resolve(*passed_on, file, source, attribute)
    else:
        yield file, name


def _named_files(statement: ast.stmt, path: Path) -> Iterator[Path]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
            if "." in name and "/" not in name and len(name) < 100:
                file = path.with_name(name) if name.strip(".") else path
                if file != path and file.suffix != ".py" and file.is_file():
                    yield file
