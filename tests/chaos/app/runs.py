"""A handler whose every step leaves a mark outside the database."""

import os
import time

from django_runstore import handler

STEPS = 4
STEP_SECONDS = 0.02


def leave_mark(run, step):
    """Append one line, whole, to the file that the state names."""
    line = f"{run.run_id}\t{run.fence}\t{step}\n".encode()
    descriptor = os.open(run.state["effects"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line)
    os.close(descriptor)


@handler("chaos.steps", queue="chaos")
def steps(run):
    """Append one line per step, then save; a new owner goes on from the last save."""
    state = run.state
    while state["step"] < STEPS:
        run.check()
        leave_mark(run, state["step"])
        state["step"] += 1
        run.save(state)
    return {"steps": state["step"]}


@handler("chaos.remembered", queue="chaos")
def remembered(run):
    """Append one line per step and save nothing; a new owner goes on after what is recorded."""

    def work(step):
        leave_mark(run, step)
        # Long enough that some are killed in the middle of it.
        time.sleep(STEP_SECONDS)
        return {"step": step, "fence": run.fence}

    return [run.step(f"step {step}", work, step) for step in range(STEPS)]
