"""A handler whose every step leaves a mark outside the database."""

import os

from django_runstore import handler

STEPS = 4


@handler("chaos.steps", queue="chaos")
def steps(run):
    """Append one line per step, then save; a new owner goes on from the last save."""
    state = run.state
    while state["step"] < STEPS:
        run.check()
        line = f"{run.run_id}\t{run.fence}\t{state['step']}\n".encode()
        descriptor = os.open(state["effects"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line)
        os.close(descriptor)
        state["step"] += 1
        run.save(state)
    return {"steps": state["step"]}
