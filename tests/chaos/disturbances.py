"""What can go wrong around running supervisors, one function each."""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from django.db import connection

from tests.supervision.processes import SupervisorProcess, is_alive

# Longer than the lease of tests/settings.py: what is stopped so long may be taken from.
LONGER_THAN_THE_LEASE_S = 3.0


@dataclass
class Scene:
    """
    The supervisors there are, and who is under a fault now: one fault at a time for each.

    Attributes:
        start: Starts a supervisor.
        moments: Where every choice comes from.
    """

    start: Callable[[], SupervisorProcess]
    moments: Random
    supervisors: list[SupervisorProcess] = field(default_factory=list)
    stopped: set[int] = field(default_factory=set)
    timers: list[threading.Timer] = field(default_factory=list)

    def pick(self) -> SupervisorProcess | None:
        """Choose a supervisor that is up and under no fault."""
        up = [
            supervisor
            for supervisor in self.supervisors
            if supervisor.process.poll() is None and supervisor.pid not in self.stopped
        ]
        return self.moments.choice(up) if up else None

    def refill(self, wanted: int) -> None:
        """Start supervisors in the place of those that ended."""
        for supervisor in self.supervisors:
            if supervisor.process.poll() is not None:
                supervisor.end()
        self.supervisors = [each for each in self.supervisors if each.process.poll() is None]
        while len(self.supervisors) < wanted:
            self.supervisors.append(self.start())

    def stop_for_a_while(self, supervisor: SupervisorProcess, pid: int) -> None:
        """Send SIGSTOP, and SIGCONT after longer than the lease."""
        self.stopped.add(supervisor.pid)
        os.kill(pid, signal.SIGSTOP)

        def go_on() -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.stopped.discard(supervisor.pid)

        timer = threading.Timer(LONGER_THAN_THE_LEASE_S, go_on)
        self.timers.append(timer)
        timer.start()

    def calm(self) -> None:
        """Wait until nothing is stopped any more."""
        for timer in self.timers:
            timer.join()


def kill_worker(scene: Scene) -> bool:
    """Kill -9 a worker."""
    return _with_worker(scene, lambda _, pid: os.kill(pid, signal.SIGKILL))


def kill_supervisor(scene: Scene) -> bool:
    """Kill -9 a supervisor; its workers die of it."""
    return _with_supervisor(scene, lambda supervisor: supervisor.signal(signal.SIGKILL))


def kill_both(scene: Scene) -> bool:
    """Kill -9 a worker and, before it can look, its supervisor."""

    def kill(supervisor: SupervisorProcess, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        supervisor.signal(signal.SIGKILL)

    return _with_worker(scene, kill)


def stop_worker(scene: Scene) -> bool:
    """SIGSTOP a worker for longer than the lease; its supervisor beats on, and ends it."""
    return _with_worker(scene, scene.stop_for_a_while)


def stop_supervisor(scene: Scene) -> bool:
    """SIGSTOP a supervisor for longer than the lease, with its workers running on."""
    return _with_supervisor(
        scene, lambda supervisor: scene.stop_for_a_while(supervisor, supervisor.pid)
    )


def drain(scene: Scene) -> bool:
    """SIGTERM a supervisor, as a deploy does."""
    return _with_supervisor(scene, lambda supervisor: supervisor.signal(signal.SIGTERM))


def end_sessions(scene: Scene) -> bool:
    """End every session of the database but this one."""
    del scene
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    return True


def crash_database(scene: Scene) -> bool:
    """Kill -9 a session of the server, which restarts and recovers from its log for that."""
    del scene
    if connection.vendor != "postgresql":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    os.kill(pid, signal.SIGKILL)
    connection.close()
    return True


def lock_table(scene: Scene) -> bool:
    """Hold the lock of the run table for longer than the write tolerance."""
    ended = threading.Event()

    def hold() -> None:
        with suppress(Exception), connection.cursor() as cursor:
            statement = "LOCK TABLE runstore_run IN ACCESS EXCLUSIVE MODE"
            is_sqlite = connection.vendor == "sqlite"
            cursor.execute("BEGIN IMMEDIATE" if is_sqlite else f"BEGIN; {statement}")
            ended.wait(LONGER_THAN_THE_LEASE_S)
            cursor.execute("COMMIT")
        connection.close()

    holder = threading.Timer(0, hold)
    scene.timers.append(holder)
    holder.start()
    return True


DISTURBANCES: dict[str, Callable[[Scene], bool]] = {
    function.__name__: function
    for function in (
        kill_worker,
        kill_supervisor,
        kill_both,
        stop_worker,
        stop_supervisor,
        drain,
        end_sessions,
        crash_database,
        lock_table,
    )
}
"""By name; each tells whether there was anything to disturb."""


def _with_supervisor(scene: Scene, act: Callable[[SupervisorProcess], object]) -> bool:
    supervisor = scene.pick()
    if supervisor is None:
        return False
    with suppress(ProcessLookupError):
        act(supervisor)
    return True


def _with_worker(scene: Scene, act: Callable[[SupervisorProcess, int], object]) -> bool:
    supervisor = scene.pick()
    workers = [] if supervisor is None else supervisor.worker_pids()
    alive = [pid for pid in workers if is_alive(pid)]
    if supervisor is None or not alive:
        return False
    with suppress(ProcessLookupError):
        act(supervisor, scene.moments.choice(alive))
    return True
