"""The test suite's legs: the same tests on SQLite and then on PostgreSQL."""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from devtools.children import run
from devtools.environment import ROOT, Environment

# What `python -m django_runstore.testing.postgres` exits with when there is no PostgreSQL.
UNAVAILABLE_STATUS = 69


@dataclass(frozen=True, slots=True)
class LegResult:
    """
    What became of the suite on one database.

    Attributes:
        counts: How many tests ended as ``passed``, ``failed``, ``skipped``,
            ``xfailed`` or ``errors``.
        skip_reasons: How many tests were skipped for each reason.
        exit_status: pytest's, or ``UNAVAILABLE_STATUS``.
    """

    name: str
    exit_status: int
    counts: Counter[str] = field(default_factory=Counter)
    skip_reasons: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def was_tested(self) -> bool:
        """Whether there was a database to run on."""
        return self.exit_status != UNAVAILABLE_STATUS

    @property
    def broke_off(self) -> bool:
        """Whether pytest failed for another reason than a failed test."""
        explained = self.counts["failed"] or self.counts["errors"]
        return self.was_tested and self.exit_status != 0 and not explained


@dataclass(frozen=True, slots=True)
class Leg:
    """One database to run the suite on, and what has to stand in front of pytest for it."""

    name: str
    variables: Mapping[str, str]
    launcher: tuple[str, ...] = ()


LEGS = {
    "sqlite": Leg(
        "SQLite",
        # Said and not left to the default: a DATABASE_URL of the person's own
        # project may be in the environment.
        {"RUNSTORE_TEST_LEG": "sqlite", "DATABASE_URL": f"sqlite:///{ROOT / 'db.sqlite3'}"},
    ),
    "postgres": Leg(
        "PostgreSQL",
        {"RUNSTORE_TEST_LEG": "postgres"},
        ("-m", "django_runstore.testing.postgres"),
    ),
}


def run_leg(
    leg: Leg, environment: Environment, arguments: Sequence[str], *, coverage: bool
) -> LegResult:
    """Run pytest with ``arguments`` on one database and read its report."""
    python = str(environment.python)
    launcher = [python, *leg.launcher] if leg.launcher else []
    measured = ["-m", "coverage", "run"] if coverage else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # Last, since the summary cannot do without it.
        command = [python, *measured, "-m", "pytest", *arguments, f"--junit-xml={report}"]
        status = run([*launcher, *command], leg.variables)
        if not report.exists():
            return LegResult(leg.name, status)
        return read_report(leg.name, status, report.read_text())


def read_report(name: str, status: int, report: str) -> LegResult:
    """Count the outcomes in a JUnit report."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    seconds = 0.0
    for suite in ET.fromstring(report).iter("testsuite"):  # noqa: S314 - pytest wrote it
        seconds += float(suite.get("time", "0"))
        for case in suite.iter("testcase"):
            outcome = _outcome(case)
            counts[outcome] += 1
            skipped = case.find("skipped")
            if outcome == "skipped" and skipped is not None:
                reasons[skipped.get("message", "no reason given")] += 1
    return LegResult(name, status, counts, reasons, seconds)


def _outcome(case: ET.Element) -> str:
    if case.find("error") is not None:
        return "errors"
    if case.find("failure") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"
