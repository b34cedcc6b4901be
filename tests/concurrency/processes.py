"""Real processes over the database under test, let loose at one moment."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 100


def let_loose(
    job: str, arguments: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
) -> list[Any]:
    """
    Do one job of ``tests.concurrency.jobs`` in a process per mapping of arguments.

    Every process is up and connected before the first one begins. Gives what each returned;
    a process that raised fails the test with its traceback.
    """
    return let_loose_all([(job, each) for each in arguments], environment)


def let_loose_all(
    jobs: Sequence[tuple[str, Mapping[str, Any]]], environment: Mapping[str, str]
) -> list[Any]:
    """Do several jobs, each with its arguments in a process of its own, as ``let_loose``."""
    with ExitStack() as cleanup:
        processes = [cleanup.enter_context(_process(*each, environment)) for each in jobs]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [_answer(process) for process in processes]


def _process(
    job: str, arguments: Mapping[str, Any], environment: Mapping[str, str]
) -> "subprocess.Popen[str]":
    return _Killed(
        [sys.executable, "-m", "tests.concurrency.jobs", job, json.dumps(arguments)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class _Killed(subprocess.Popen[str]):
    """Leave no process behind a test that failed."""

    def __exit__(self, *error: object) -> None:
        self.kill()
        super().__exit__(*error)  # type: ignore[arg-type]


def _answer(process: "subprocess.Popen[str]") -> Any:
    answer, complaint = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, complaint
    return json.loads(answer)
