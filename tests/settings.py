"""The test project with handlers to test with and a lease that a test can wait for."""

import os
import sys

from testproject.settings import *  # noqa: F403 - a variant of these settings
from testproject.settings import INSTALLED_APPS as PROJECT_APPS

INSTALLED_APPS = [*PROJECT_APPS, "tests.runapp"]

RUNSTORE = {
    "LEASE": {
        "HEARTBEAT_INTERVAL_MS": 200,
        "STALE_AFTER_MS": 2_000,
        "SKEW_ALLOWANCE_MS": 600,
    },
    "POLL_INTERVAL_MS": int(os.environ.get("RUNSTORE_TEST_POLL_INTERVAL_MS", "100")),
    "IDLE_POLL_INTERVAL_MS": 200,
    "STOP_GRACE_MS": 1_000,
    **{
        name: int(os.environ[f"RUNSTORE_TEST_{name}"])
        for name in ("WORKER_MAX_RUNS", "WORKER_MAX_MEMORY_MIB")
        if f"RUNSTORE_TEST_{name}" in os.environ
    },
    "CODE_VERSION": os.environ.get("RUNSTORE_TEST_CODE_VERSION", ""),
    "RUNTIME_DIR": os.environ.get("RUNSTORE_TEST_RUNTIME_DIR", "/tmp/runstore-tests"),  # noqa: S108 - private to its user
}

if os.environ.get("RUNSTORE_TEST_BREAK_WORKERS") and "runstore_supervise" not in sys.argv:
    raise ImportError("workers cannot load the project: broken on purpose")
