"""
What this machine can say about a process: which one a pid means, and whether it exists.

A pid alone proves nothing: it is reused after a reboot, means another process in another
pid namespace, and stays taken by a zombie. On Linux ``/proc`` answers each of these. Off
Linux only "is there a process with this pid" is left: a reused pid then looks alive
(takeover waits until it exits), and so does a zombie.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
import uuid
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

PROC = Path("/proc")

_HOST_NAME_CHARACTERS = 64
_DEAD_STATES: Final = frozenset("ZXx")


class Presence(StrEnum):
    """Whether a process exists; only ``GONE`` is ever evidence."""

    EXISTS = "exists"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What looking for a process found, and the one word that explains it."""

    presence: Presence
    reason: str


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The parts of ``/proc/<pid>/stat`` that identify a process."""

    state: str
    thread_count: int
    start_ticks: int

    @property
    def is_dead(self) -> bool:
        """
        Tell whether nothing of the process runs any more.

        A main thread that has ended while its siblings work on is shown as a zombie too;
        such a process is very much alive, and the thread count gives it away.
        """
        return self.state in _DEAD_STATES and self.thread_count <= 1


def host_scope() -> str:
    """
    Name the scope in which a pid and a start time mean one process and no other.

    Returns:
        On Linux host name, boot id, pid namespace and time namespace (start ticks are
        counted in the reader's time namespace). Where Linux hides one of them, a name
        that no other process shares, so that nobody draws a conclusion from a pid. Off
        Linux host name and hardware address, which tells two machines apart but neither
        two boots nor two containers.
    """
    host_name = _host_name()
    if not sys.platform.startswith("linux"):
        return f"{host_name}/node-{uuid.getnode():012x}"
    boot_id = _read_boot_id()
    pid_namespace = _namespace_inode("pid")
    if boot_id is None or pid_namespace is None:
        return f"{host_name}/unscoped-{secrets.token_hex(8)}"
    # Kernels before 5.6 have no time namespaces: every process counts the same ticks.
    time_namespace = _namespace_inode("time") or 0
    return f"{host_name}/{boot_id}/pid-{pid_namespace}/time-{time_namespace}"


def own_start_ticks() -> int | None:
    """Read when this process started, in clock ticks since boot; None off Linux."""
    # Not /proc/<getpid()>: with the outer namespace's /proc mounted that is someone else.
    stat = _read_stat("self")
    return None if stat is None else stat.start_ticks


def look_for_process(pid: int, start_ticks: int | None = None) -> Sighting:
    """
    Look for the process that had ``pid`` and started at ``start_ticks``.

    The caller has made sure that the pid belongs to this process' own ``host_scope()``.

    Args:
        pid: Greater than 0. Zero and negative numbers address process groups, so they
            are never probed and the answer is unknown.
        start_ticks: Clock ticks since boot, or None when nobody recorded them: then a
            reused pid cannot be told from the process that had it.

    Returns:
        ``GONE`` only for "no such process", another start time, or a zombie. Every error
        in between is ``UNKNOWN`` or ``EXISTS``.
    """
    if pid <= 0 or os.name != "posix":
        # Windows has no signal 0: os.kill(pid, 0) would send it a console event.
        return Sighting(Presence.UNKNOWN, "not-probed")
    failure = _signal_failure(pid)
    if failure is not None:
        return failure
    stat = _read_stat(str(pid)) if _proc_shows_own_namespace() else None
    if stat is None:
        # Hidden by hidepid, another namespace's /proc, not Linux, or just gone.
        return Sighting(Presence.EXISTS, "pid-in-use")
    if start_ticks is not None and stat.start_ticks != start_ticks:
        return Sighting(Presence.GONE, "another-start-time")
    if stat.is_dead:
        return Sighting(Presence.GONE, "zombie")
    return Sighting(Presence.EXISTS, "running")


def parse_stat(text: str) -> ProcessStat | None:
    """
    Read state, thread count and start time from the text of ``/proc/<pid>/stat``.

    The command name in the second field may hold blanks and parentheses, so fields are
    counted from the last closing one. None when the text is not of that shape.
    """
    _, closing, rest = text.rpartition(")")
    fields = rest.split()
    try:
        # Fields 3, 20 and 22 of proc_pid_stat(5); the first one left is field 3.
        return ProcessStat(fields[0], int(fields[17]), int(fields[19])) if closing else None
    except (IndexError, ValueError):
        return None


def _signal_failure(pid: int) -> Sighting | None:
    """Probe with signal 0; None when something has this pid and /proc must tell what."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Sighting(Presence.GONE, "no-such-process")
    except PermissionError:
        return None  # it exists and belongs to somebody else
    except Exception:  # noqa: BLE001 - whatever the platform raises is no proof of death
        return Sighting(Presence.UNKNOWN, "probe-failed")
    return None


def _read_stat(name: str) -> ProcessStat | None:
    text = _read_text(PROC / name / "stat")
    return None if text is None else parse_stat(text)


def _proc_shows_own_namespace() -> bool:
    try:
        return str((PROC / "self").readlink()) == str(os.getpid())
    except OSError:
        return False


def _read_boot_id() -> str | None:
    text = _read_text(PROC / "sys/kernel/random/boot_id")
    return None if text is None or not text.strip() else text.strip()


def _namespace_inode(kind: str) -> int | None:
    try:
        return (PROC / "self/ns" / kind).stat().st_ino
    except OSError:
        return None


def _read_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _host_name() -> str:
    # The kernel takes any bytes for a host name; an owner's host id must be durable text
    # and its parts are separated by slashes.
    name = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname())[:_HOST_NAME_CHARACTERS]
    return name or "unnamed"
