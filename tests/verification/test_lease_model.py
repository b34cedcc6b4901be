"""``verification/lease.pml``, checked exhaustively: what holds, and what breaks without a guard."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[2] / "verification" / "lease.pml"
TOOLS = ("spin", "gcc")
CAN_CHECK = all(shutil.which(tool) for tool in TOOLS)
IS_LONG = os.environ.get("RUNSTORE_VERIFICATION") == "long"

pytestmark = [
    pytest.mark.sqlite("no database is asked; once is enough"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        # Where the verdict counts, the check may not be missing.
        not CAN_CHECK and os.environ.get("CI") != "true",
        reason=f"{' and '.join(TOOLS)} are not installed",
    ),
]

# A host that is only slow may be taken for dead, by whoever cannot look at its process.
WORST = "SLOW_LOOKS_DEAD"

HOLDS = [
    ("exclusive", WORST),
    ("grounded", WORST),
    ("fenced", WORST),
    ("retakable",),
    # Each of these two guards is enough while there is the other.
    ("exclusive", WORST, "NO_SNAPSHOT"),
    ("exclusive", WORST, "RECONFIRM_OVER_CLAIM"),
]

# Writes are fenced whatever the clocks do. Ten million states each.
HOLDS_AT_LENGTH = [
    ("fenced", WORST, "CLOCKS_APART"),
    ("fenced", WORST, "NO_STALENESS"),
]

BREAKS = [
    ("exclusive", WORST, "NO_DEADLINE"),
    ("exclusive", WORST, "NO_STALENESS"),
    ("exclusive", WORST, "CLOCKS_APART"),
    ("exclusive", WORST, "NO_SNAPSHOT", "RECONFIRM_OVER_CLAIM"),
    ("exclusive", WORST, "ACTIVATE_IN_TWO_STEPS"),
    ("grounded", WORST, "NO_TOKEN"),
    ("fenced", WORST, "NO_FENCE"),
    ("fenced", WORST, "SAME_FENCE_AGAIN"),
    ("fenced", WORST, "WRITE_IN_TWO_STEPS"),
    ("retakable", "NO_STEAL"),
    ("retakable", "NO_RECOVERY"),
]


def named(case):
    return " ".join(case)


@pytest.mark.parametrize("case", HOLDS, ids=named)
def test_it_holds_in_every_state_there_is(tmp_path, case):
    errors, states = check(tmp_path, *case)
    assert errors == 0
    # So many that the hosts have really got into each other's way.
    assert states > 500_000


@pytest.mark.skipif(not IS_LONG, reason="RUNSTORE_VERIFICATION is not 'long'")
@pytest.mark.parametrize("case", HOLDS_AT_LENGTH, ids=named)
def test_it_holds_whatever_the_clocks_do(tmp_path, case):
    errors, states = check(tmp_path, *case)
    assert errors == 0
    assert states > 5_000_000


@pytest.mark.parametrize("case", BREAKS, ids=named)
def test_it_breaks_without_its_guard(tmp_path, case):
    errors, _ = check(tmp_path, *case)
    assert errors == 1


def test_every_switch_and_every_property_of_the_model_is_used():
    text = MODEL.read_text()
    switches = set(re.findall(r"#ifn?def (\w+)|defined\((\w+)\)", text))
    properties = set(re.findall(r"^ltl (\w+)", text, re.MULTILINE))
    used = {word for case in HOLDS + BREAKS for word in case}
    assert {name for pair in switches for name in pair if name} | properties == used
    assert {case[0] for case in HOLDS} == {case[0] for case in BREAKS} == properties


def check(folder: Path, formula: str, *switches: str) -> tuple[int, int]:
    """Check one property of one variant; give the number of errors and of states."""
    defined = [f"-D{switch}" for switch in switches]
    run(folder, "spin", "-a", *defined, str(MODEL))
    run(folder, "gcc", "-O2", "-w", "-DMEMLIM=4096", "-o", "pan", "pan.c")
    # Weak fairness: a host that can move for ever moves some day.
    fairness = ["-f"] if formula == "retakable" else []
    said = run(folder, "./pan", "-a", "-n", "-m4000000", *fairness, "-N", formula)
    # An unfinished search would also have found nothing.
    assert "max search depth too small" not in said
    assert "out of memory" not in said
    assert f"ltl formula {formula}" in said
    found = re.search(r"errors: (\d+)\s+(\d+) states, stored", said)
    assert found is not None, said
    return int(found[1]), int(found[2])


def run(folder: Path, *command: str) -> str:
    """Run a tool to its end and give what it said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said
