"""
The same counts by other code: one process, no runs, no database, no syntax tree.

``python -m testproject.corpus.reference OUT`` writes them as JSON. Tokens and function
lengths come from a single pass over the token stream, so agreement with the runs, which
measure functions in the syntax tree, is no accident.
"""

import json
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from testproject.corpus.files import library_root, shares

_NAMES: Final = {
    "NAME": "names",
    "OP": "operators",
    "NUMBER": "numbers",
    "STRING": "strings",
    "COMMENT": "comments",
}
# Enough to leave ten after the functions of unparsable files are taken out.
_KEPT: Final = 400


def count_library(root: Path) -> dict[str, Any]:
    """Count every file of the library, one after the other."""
    files = lines = 0
    tokens = dict.fromkeys(_NAMES.values(), 0)
    functions: list[tuple[int, str]] = []
    for share in shares(root):
        for name in share.files:
            files += 1
            with (root / name).open("rb") as source:
                lines += sum(1 for _ in source)
            stream = _token_stream(root / name)
            for token in stream:
                kind = _NAMES.get(tokenize.tok_name[token.type])
                if kind is not None:
                    tokens[kind] += 1
            functions.extend(
                (last - first + 1, f"{name}:{first} {title}")
                for first, last, title in function_extents(stream)
            )
            functions = sorted(functions, reverse=True)[:_KEPT]
    return {"files": files, "lines": lines, "tokens": tokens, "functions": functions}


def _token_stream(path: Path) -> list[tokenize.TokenInfo]:
    try:
        with path.open("rb") as source:
            return list(tokenize.tokenize(source.readline))
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return []


def function_extents(stream: list[tokenize.TokenInfo]) -> Iterator[tuple[int, int, str]]:
    """Find each function's first line, last line and name by counting indentation."""
    significant = [t for t in stream if t.type not in {tokenize.NL, tokenize.COMMENT}]
    depth = last_line = 0
    at_line_start = True
    pending: tuple[int, str] | None = None  # a header whose body has not begun
    open_functions: list[tuple[int, int, str]] = []  # depth of the body, first line, name
    for position, token in enumerate(significant):
        if token.type == tokenize.INDENT:
            depth += 1
            if pending is not None:
                open_functions.append((depth, *pending))
                pending = None
        elif token.type == tokenize.DEDENT:
            if open_functions and open_functions[-1][0] == depth:
                _, first, title = open_functions.pop()
                yield first, last_line, title
            depth -= 1
        else:
            if pending is not None and at_line_start:
                # The line ended and nothing was indented: the body stood on the same line.
                yield pending[0], last_line, pending[1]
                pending = None
            if at_line_start:
                pending = _header(significant, position) or pending
            at_line_start = token.type in {tokenize.NEWLINE, tokenize.ENCODING}
            if token.type == tokenize.NEWLINE:
                last_line = token.start[0]


def _header(tokens: list[tokenize.TokenInfo], position: int) -> tuple[int, str] | None:
    """Give line and name when a function definition begins here."""
    words = [token.string for token in tokens[position : position + 3]]
    if words[:1] == ["def"] and len(words) > 1:
        return tokens[position].start[0], words[1]
    if words[:2] == ["async", "def"]:
        return tokens[position].start[0], words[2]
    return None


def main(out: str) -> None:
    """Count and write the result."""
    Path(out).write_text(json.dumps(count_library(library_root())), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
