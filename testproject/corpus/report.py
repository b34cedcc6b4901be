"""Add up what the runs found, and hold it against the other count."""

import ast
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testproject.corpus.counting import LARGEST


def add_up(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge the results of all runs into one report."""
    tokens: Counter[str] = Counter()
    report: dict[str, Any] = {"files": 0, "lines": 0, "functions": [], "unparsed": []}
    for result in results:
        report["files"] += result["done"]
        report["lines"] += result["lines"]
        tokens.update(result["tokens"])
        report["functions"] += map(tuple, result["functions"])
        report["unparsed"] += result["unparsed"]
    report["functions"] = sorted(report["functions"], reverse=True)[:LARGEST]
    report["tokens"] = dict(tokens)
    return report


def differences(report: dict[str, Any], reference: dict[str, Any], root: Path) -> list[str]:
    """Compare with the reference; empty when both agree on everything."""
    found = [
        f"{name}: {report[name]} by the runs, {reference[name]} by the other count"
        for name in ("files", "lines", "tokens")
        if report[name] != reference[name]
    ]
    # The runs leave out the functions of files that the compiler refuses. The other count
    # never parsed anything, so whether they were right about those files is asked here.
    wrongly = [name for name in report["unparsed"] if _parses(root / name)]
    found += [f"{name}: called unparsable, but it is not" for name in wrongly]
    left_out = set(report["unparsed"])
    expected = [
        (size, place)
        for size, place in map(tuple, reference["functions"])
        if place.split(":", 1)[0] not in left_out
    ]
    if report["functions"] != sorted(expected, reverse=True)[:LARGEST]:
        found.append("the largest functions differ")
    return found


def _parses(path: Path) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def render(report: dict[str, Any]) -> list[str]:
    """Spell the report as lines of text."""
    tokens = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report["tokens"].items()))
    largest = [f"    {size:>5} lines  {place}" for size, place in report["functions"][:5]]
    return [
        f"  {report['files']:,} files, {report['lines']:,} lines",
        f"  tokens: {tokens}",
        "  largest functions:",
        *largest,
    ]
