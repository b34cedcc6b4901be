"""Run a command in the checkout and wait for its end, also when the person presses Ctrl-C."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from devtools.environment import ROOT


def run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> int:
    """
    Run ``command`` with ``variables`` added to the environment.

    Returns:
        Its exit status.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, and the command has ended.
    """
    sys.stdout.flush()
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | (variables or {})) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # The terminal told the command too, and it may have servers and workers
            # to end before it ends itself.
            process.wait()
            raise
