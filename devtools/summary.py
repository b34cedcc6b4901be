"""What is printed after the legs: one block for people and pytest's closing line."""

from collections import Counter
from collections.abc import Sequence

from devtools.legs import LegResult

# As pytest writes and orders them.
PARTS = ("failed", "passed", "skipped", "xfailed", "errors")
WIDTH = 80


def describe(results: Sequence[LegResult], platform: str) -> str:
    """Return passed, failed and skipped of every leg, and why tests were skipped."""
    lines = ["", f"Summary ({platform})"]
    for result in results:
        lines.append(f"  {result.name:<12}{_describe_leg(result)}")
        for reason, number in sorted(result.skip_reasons.items()):
            lines.append(f"  {'':<12}{number} skipped: {reason}")
    for result in results:
        if not result.was_tested:
            lines += _banner(f"{result.name.upper()} WAS NOT TESTED: none was found, see above")
    return "\n".join(lines)


def closing_line(results: Sequence[LegResult]) -> str:
    """Return the sum of all legs in the words of pytest's last line."""
    counts: Counter[str] = Counter()
    for result in results:
        counts.update(result.counts)
        # One that was killed, say, must not look like one that passed.
        counts["errors"] += result.broke_off
    said = ", ".join(
        f"{counts[part]} {_plural(part, counts[part])}" for part in PARTS if counts[part]
    )
    seconds = sum(result.seconds for result in results)
    return f" {said or 'no tests ran'} in {seconds:.2f}s ".center(WIDTH, "=")


def succeeded(results: Sequence[LegResult], *, strict: bool) -> bool:
    """Tell whether every leg passed; a leg without a database counts only when ``strict``."""
    return any(result.was_tested for result in results) and all(
        result.exit_status == 0 or not (result.was_tested or strict) for result in results
    )


def _describe_leg(result: LegResult) -> str:
    if not result.was_tested:
        return "not tested"
    if not result.counts:
        return f"no result (pytest's exit status: {result.exit_status})"
    counts = result.counts
    said = f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    for part in ("xfailed", "errors"):
        if counts[part]:
            said += f", {counts[part]} {_plural(part, counts[part])}"
    if result.broke_off:
        said += f" (pytest's exit status: {result.exit_status})"
    return f"{said} in {result.seconds:.1f} s"


def _plural(part: str, number: int) -> str:
    return "error" if part == "errors" and number == 1 else part


def _banner(text: str) -> list[str]:
    return ["", "!" * WIDTH, f"!! {text}", "!" * WIDTH]
