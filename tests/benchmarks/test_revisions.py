"""The benchmark of revisions prints a ratio for each workload and leaves the triggers there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from django_runstore.db.triggers import wrong_triggers
from django_runstore.models import Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.django_db(transaction=True)
def test_each_workload_has_its_ratios(child_environment):
    printed = subprocess.run(
        [sys.executable, "-m", "benchmarks.revisions", "--rounds", "1", "--runs", "3"],
        cwd=ROOT,
        env=child_environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = re.findall(
        r"^(.{26}) +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+) +([\d.]+)$", printed, re.MULTILINE
    )
    assert [name.strip() for name, *_ in lines] == [
        "claim_many(100)",
        "claim_and_own",
        "whole cycle, one by one",
    ]
    assert wrong_triggers(connection, Run) == []
