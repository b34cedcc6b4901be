"""
Write ``docs/reference/conformance.md``: which test asserts which numbered behaviour.

``python -m devtools.conformance_table`` reads the markers out of the tests and writes the
page. A test compares the page with what it would be, so a stale one does not last.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "conformance.md"
NOTES: Final = Path(__file__).with_name("conformance_notes.toml")
SUITES: Final = "django_runstore/testing/conformance"

# In tests by pytest's marker; in the public suites, which do not need pytest, by their own.
MARKERS: Final = frozenset({"pytest.mark.conformance", "covers"})

Tests: TypeAlias = Mapping[str, tuple["MarkedTest", ...]]

_HEAD: Final = """\
# Conformance

Which test asserts which behaviour of the specification. The numbers are those of its
conformance notes; numbers that are missing were never given. Every test runs on SQLite and on
PostgreSQL, unless it is about one of them. Tests under `testing/conformance` belong to the
[public suites](conformance-suites) and run over every arbiter, clock and liveness check of
this package.

This page is written by `python -m devtools.conformance_table`.
"""


@dataclass(frozen=True, slots=True, order=True)
class MarkedTest:
    """A test and the file it stands in."""

    path: str
    name: str


def sections() -> list[tuple[str, dict[str, str]]]:
    """Return each section's title and its claims by number."""
    read: list[dict[str, str]] = tomllib.loads(NOTES.read_text(encoding="utf-8"))["section"]
    return [
        (section["title"], {item: text for item, text in section.items() if item != "title"})
        for section in read
    ]


def claims() -> dict[str, str]:
    """Return every claim by number."""
    return {item: text for _, section in sections() for item, text in section.items()}


def find_tests(root: Path = ROOT) -> Tests:
    """Return the tests of every number that any test is marked with."""
    found: dict[str, set[MarkedTest]] = {}
    files = [*root.glob("tests/**/*.py"), *root.glob(f"{SUITES}/*.py")]
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for test, items in _marked(tree, path.relative_to(root).as_posix(), ()):
            for item in items:
                found.setdefault(item, set()).add(test)
    return {item: tuple(sorted(tests)) for item, tests in found.items()}


def _marked(
    tree: ast.Module | ast.ClassDef, path: str, inherited: Iterable[str]
) -> Iterator[tuple[MarkedTest, tuple[str, ...]]]:
    """Yield the tests of a module or class with their numbers, those of what is around included."""
    around = (*inherited, *_items(_assigned_marks(tree)))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _marked(node, path, (*around, *_items(node.decorator_list)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            items = (*around, *_items(node.decorator_list))
            if items and node.name.startswith("test_"):
                yield MarkedTest(path, node.name), items


def _assigned_marks(tree: ast.Module | ast.ClassDef) -> list[ast.expr]:
    return [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]


def _items(expressions: Iterable[ast.expr]) -> Iterator[str]:
    """Yield what the markers anywhere inside expressions name."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MARKERS:
                yield from (str(_literal(argument)) for argument in node.args)


def _literal(argument: ast.expr) -> Any:  # noqa: ANN401 - a number or a text
    # A computed number could not be read here; this fails, and the test of the page with it.
    return ast.literal_eval(argument)


def render(tests: Tests) -> str:
    """Write the page."""
    parts = [_HEAD]
    for title, notes in sections():
        lines = [f"## {title}", "", "| | Behaviour | Tests |", "| --- | --- | --- |"]
        lines += [
            f"| {item} | {text} | {_cell(tests.get(item, ()))} |" for item, text in notes.items()
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(tests: Iterable[MarkedTest]) -> str:
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.path, []).append(test.name.removeprefix("test_"))
    if not by_file:
        return "**none**"
    return "<br>".join(
        f"`{path.removeprefix('django_runstore/').removeprefix('tests/')}`: "
        + ", ".join(f"`{name}`" for name in names)
        for path, names in by_file.items()
    )


def main() -> None:
    """Write the page of the present tests."""
    PAGE.write_text(render(find_tests()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
