"""What a run counts in a file: lines, tokens by kind, and how long its functions are."""

import ast
import io
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

Function: TypeAlias = tuple[int, str]
"""Number of lines, and ``path:line name``."""

LARGEST: Final = 10

_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
_KINDS: Final = {
    tokenize.NAME: "names",
    tokenize.OP: "operators",
    tokenize.NUMBER: "numbers",
    tokenize.STRING: "strings",
    tokenize.COMMENT: "comments",
}


@dataclass(frozen=True, slots=True)
class FileCount:
    """The counts of one file; ``unparsed`` when the compiler would refuse it."""

    lines: int
    tokens: dict[str, int]
    functions: list[Function]
    unparsed: bool


def count_source(path: str, source: bytes) -> FileCount:
    """Count one file. Tests of the library hold broken sources on purpose; they count too."""
    lines = source.count(b"\n") + (not source.endswith(b"\n") and bool(source))
    functions = _functions(path, source)
    return FileCount(lines, _tokens(source), functions or [], functions is None)


def _tokens(source: bytes) -> dict[str, int]:
    counts: Counter[str] = Counter()
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type in _KINDS:
                counts[_KINDS[token.type]] += 1
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        # A file that breaks off in the middle counts for nothing, rather than for a part
        # that depends on how far the tokenizer looked ahead.
        return {}
    return dict(counts)


def _functions(path: str, source: bytes) -> list[Function] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = [
        ((node.end_lineno or node.lineno) - node.lineno + 1, f"{path}:{node.lineno} {node.name}")
        for node in _statements(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return sorted(found, reverse=True)[:LARGEST]


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk blocks only: functions are statements, and expressions are most of a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for block in _BLOCKS:
            waiting.extend(getattr(node, block, ()))
