"""An append-only record of every file that was read, and under which fence."""

import os
from collections import Counter
from pathlib import Path


def note_read(log: Path, run_id: str, fence: int, name: str) -> None:
    """
    Append one line.

    Outside the database on purpose: a side effect that happens again when a batch has to be
    repeated, and shows that it did.
    """
    line = f"{run_id}\t{fence}\t{name}\n".encode()
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def reads_per_file(log: Path) -> Counter[str]:
    """Count how often each file was read."""
    with log.open(encoding="utf-8") as lines:
        return Counter(line.rstrip("\n").split("\t")[2] for line in lines)


def overlapping_reads(log: Path) -> list[str]:
    """
    List runs in which an older fence still read after a newer one had begun.

    Lines are appended in the order in which the reads happened.
    """
    newest: dict[str, int] = {}
    overlapping: set[str] = set()
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            run_id, fence, _ = line.rstrip("\n").split("\t")
            if int(fence) < newest.get(run_id, 0):
                overlapping.add(run_id)
            newest[run_id] = max(newest.get(run_id, 0), int(fence))
    return sorted(overlapping)
