"""Handlers that behave well and badly. What they do outside the database goes to a file."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from django.db import connection

from django_runstore.handlers import NonRetryableError, handler
from django_runstore.services import RunStore


def note(run, text):
    """Append one line to the file that the state names, as an effect outside the database."""
    with Path(run.state["file"]).open("a") as file:
        file.write(f"{text}\n")


@handler("test.answer")
def answer(run):
    return {"answer": 42, "state": run.state}


@handler("test.database")
def database(run):
    return {"name": str(connection.settings_dict["NAME"])}


@handler("test.backend")
def backend(run):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return {"pid": cursor.fetchone()[0]}


@handler("test.noisy")
def noisy(run):
    print("handlers may print", flush=True)  # noqa: T201
    subprocess.run(["echo", "and so may their children"], check=True)


@handler("test.closes_output")
def closes_output(run):
    sys.stdout.close()
    sys.stderr = None


@handler("test.pid")
def pid(run):
    return os.getpid()


@handler("test.fail")
def fail(run):
    message = "the disk is full \0 \ud800"
    raise RuntimeError(message)


@handler("test.fail_twice", max_attempts=3, backoff=50)
def fail_twice(run):
    if run.fence < 3:
        raise RuntimeError
    return {"fence": run.fence}


@handler("test.fail_always", max_attempts=2, backoff=[50])
def fail_always(run):
    message = f"entered under fence {run.fence}"
    raise RuntimeError(message)


@handler("test.fail_for_good", max_attempts=5, backoff=0)
def fail_for_good(run):
    message = "no such account"
    raise NonRetryableError(message)


STALLING = {
    "no_progress_after_ms": 1_000,
    "on_no_progress": "stop",
    "max_attempts": 2,
    "backoff": 0,
}


@handler("test.hangs", **STALLING)
def hangs(run):
    """Wait for what never comes."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    time.sleep(600)


@handler("test.spins", **STALLING)
def spins(run):
    """Compute in a circle, deaf to everything."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    while True:
        try:
            while True:
                pass
        except BaseException:  # noqa: BLE001, S112 - that is what deaf means here
            continue


@handler("test.advances", no_progress_after_ms=5_000, on_no_progress="stop")
def advances(run):
    """Report progress now and then."""
    for number in range(3):
        time.sleep(0.2)
        run.progress(number / 3)


def to_second_version(state, version):
    return {**state, "upgraded_from": version}


@handler("test.second_version", state_version=2, upgrade=to_second_version)
def second_version(run):
    return {"upgraded_from": run.state["upgraded_from"]}


def broken_upgrade(state, version):
    raise LookupError


@handler("test.broken_upgrade", state_version=2, upgrade=broken_upgrade)
def with_broken_upgrade(run):
    return "entered"


@handler("test.exit_once")
def exit_once(run):
    """Kill the own process the first time, and complete the second time."""
    note(run, f"entered {run.fence}")
    if run.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"fence": run.fence}


@handler("test.always_dies")
def always_dies(run):
    os.kill(os.getpid(), signal.SIGKILL)


@handler("test.polling")
def polling(run):
    """Work in small steps, looking at each whether to stop."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    while not Path(run.state["file"] + ".done").exists():
        run.check()
        note(run, f"tick {run.fence}")
        time.sleep(0.02)
    return {"fence": run.fence}


@handler("test.sleeping")
def sleeping(run):
    """Never look, but be interruptible."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    try:
        while not Path(run.state["file"] + ".done").exists():
            note(run, f"tick {run.fence}")
            time.sleep(0.02)
    finally:
        note(run, f"cleaned up {run.fence}")
    return {"fence": run.fence}


@handler("test.deaf")
def deaf(run):
    """Neither look nor leave when interrupted."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    while not Path(run.state["file"] + ".done").exists():
        try:
            note(run, f"tick {run.fence}")
            time.sleep(0.02)
        except BaseException:  # noqa: BLE001, S112 - that is what deaf means here
            continue
    return {"fence": run.fence}


@handler("test.asked_at_the_end")
def asked_at_the_end(run):
    """Be asked to stop after the last step, and finish without another look."""
    run.step("last", lambda: "done")
    note(run, "the last step is done")
    RunStore().request_cancel(run.run_id)
    return {"fence": run.fence}


@handler("test.asked_at_the_end_deaf")
def asked_at_the_end_deaf(run):
    """Be asked to stop after the last step, and stay deaf to it until the end."""
    try:
        return asked_at_the_end(run)
    except BaseException:  # noqa: BLE001 - that is what deaf means here
        return {"fence": run.fence}


@handler("test.holds_the_interpreter")
def holds_the_interpreter(run):
    """Stay in C for 10 s and let no other thread of the process run."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    # PyDLL calls without giving up the GIL, as a careless extension does.
    ctypes.PyDLL(None).sleep(10)


@handler("test.parent")
def parent(run):
    """Start a process that has effects of its own, and wait for it."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    script = (
        "import sys, time\n"
        "while True:\n"
        "    open(sys.argv[1], 'a').write('child\\n')\n"
        "    time.sleep(0.02)\n"
    )
    subprocess.run([sys.executable, "-c", script, run.state["file"]], check=True)


@handler("test.save_late")
def save_late(run):
    """Sleep over everything, and then try to write."""
    note(run, f"entered {run.fence} pid {os.getpid()}")
    while not Path(run.state["file"] + ".go").exists():
        time.sleep(0.02)
    run.save({**run.state, "saved_by": run.fence})
    note(run, f"saved {run.fence}")


@handler("test.fork")
def fork(run):
    """Let a forked child leave the handler by itself, as if the run were its own."""
    child = os.fork()
    if child == 0:
        if run.state.get("raises"):
            raise RuntimeError("in the child")
        return {"from": "child"}
    _, status = os.waitpid(child, 0)
    return {"from": "parent", "child": os.waitstatus_to_exitcode(status)}


@handler("test.pool")
def pool(run):
    """Terminate a forked child, as ``multiprocessing`` does at the end of a pool."""
    started, start = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(start, b".")
        while True:
            time.sleep(600)
    # Python drops a signal that reaches a child before it has left fork().
    os.read(started, 1)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    return {"child": os.waitstatus_to_exitcode(status)}


def effect(run, name):
    note(run, f"{name} {run.fence} entered {os.getpid()}")
    if name == run.state.get("dies_in") and run.fence == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return [name, run.fence]


@handler("test.steps")
def steps(run):
    """Do three things once each, though the first execution dies in or after one of them."""
    results = []
    for name in ("first", "second", "third"):
        results.append(run.step(name, lambda name=name: effect(run, name)))
        if name == run.state.get("dies_after") and run.fence == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    return results


@handler("test.steps_deserted")
def steps_deserted(run):
    """Kill the supervisor after the second step, which takes this worker along."""
    results = [run.step(name, lambda name=name: effect(run, name)) for name in ("first", "second")]
    if run.fence == 1:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return [*results, run.step("third", lambda: effect(run, "third"))]
