"""
A worker: ``python -m django_runstore.supervision.worker``, started by a supervisor alone.

This module is what runs before Django is set up. The first message says which settings
are in force, and only then are the applications loaded.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING, Final

import django

from django_runstore.supervision.parent_death import ParentIsGoneError, die_with_parent
from django_runstore.supervision.protocol import (
    COMMANDS,
    LONGEST_COMMAND_BYTES,
    Hello,
    MessageReader,
)
from django_runstore.supervision.shared_settings import adopt_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

CANNOT_START_STATUS: Final = 78
"""Exit status of a worker that could not load the project (``EX_CONFIG``)."""


def main(arguments: Sequence[str]) -> int:
    """
    Be a worker until the supervisor closes the pipe.

    Args:
        arguments: The descriptors to read commands from and to write reports to.

    Returns:
        The exit status.
    """
    command_fd, report_fd = map(int, arguments)
    reader = MessageReader(command_fd, COMMANDS, LONGEST_COMMAND_BYTES)
    hello = reader.read()
    if not isinstance(hello, Hello):
        return 0
    # What a handler starts must not hold them: the lock of the owner least of all.
    for descriptor in (command_fd, report_fd, hello.deadline_fd, hello.lock_fd):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - it takes no keyword
    try:
        die_with_parent(hello.supervisor_pid)
        _load_project(hello)
    except ParentIsGoneError:
        return 0
    except Exception:  # noqa: BLE001 - whatever a project raises while it loads
        traceback.print_exc()
        return CANNOT_START_STATUS
    # Importable only now: models need loaded applications.
    executor = importlib.import_module("django_runstore.supervision.executor")
    status: int = executor.Executor(hello, reader, report_fd).run()
    return status


def _load_project(hello: Hello) -> None:
    # The supervisor's path, which manage.py or a server may have changed. PYTHONPATH only
    # carried it here; the children of handlers get what it was.
    sys.path[:] = hello.sys_path
    if hello.python_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = hello.python_path
    adopt_settings(hello.settings)
    django.setup()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
