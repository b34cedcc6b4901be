"""Who is killed, and how."""

import os
import signal
from contextlib import suppress


def kill_a_supervisor(supervisors, moments):
    moments.choice(supervisors).signal(signal.SIGKILL)


def kill_a_worker(supervisors, moments):
    """Kill a worker of one that is still up; its pid may be gone by now, then nothing dies."""
    up = [supervisor for supervisor in supervisors if supervisor.process.poll() is None]
    with suppress(ProcessLookupError):
        os.kill(moments.choice(up).worker_pids()[-1], signal.SIGKILL)
