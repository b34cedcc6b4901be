"""Read what a module imports, wherever in it the import stands."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "django_runstore"

# Functions that import what a string names.
IMPORTING_CALLS = {"import_module", "import_string", "__import__"}


@dataclass(frozen=True, slots=True)
class Import:
    """One import: by whom, of what, on which line, and whether only a type checker runs it."""

    importer: str
    target: str
    line: int
    for_types_only: bool = False

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Map the dotted name of every module of the package to its file."""
    return {
        _dotted(path.relative_to(root)): path for path in sorted(root.glob(f"{PACKAGE}/**/*.py"))
    }


def imports_of(module: str, path: Path, known: dict[str, Path]) -> Iterator[Import]:
    """Yield the module's imports from the package, at every depth."""
    tree = ast.parse(path.read_text(), filename=str(path))
    typed_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    base = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        for target in _targets(node, base, known):
            if target == PACKAGE or target.startswith(f"{PACKAGE}."):
                yield Import(module, target, node.lineno, id(node) in typed_only)  # type: ignore[attr-defined]


def _targets(node: ast.AST, base: str, known: dict[str, Path]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=name, names=names, level=level):
            source = ".".join(filter(None, [_ancestor(base, level), name]))
            for alias in names:
                inner = f"{source}.{alias.name}"
                # A name may be a module or something inside one. What the root gives
                # away lazily (RunStore, handler) is kept apart: it is not the root's.
                yield inner if inner in known or source == PACKAGE else source
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            called = ast.unparse(function).rpartition(".")[2]
            if called in IMPORTING_CALLS:
                yield name


def _ancestor(base: str, level: int) -> str:
    if level == 0:
        return ""
    parts = base.split(".")
    return ".".join(parts[: len(parts) - level + 1])


def _dotted(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
