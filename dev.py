#!/usr/bin/env python3
"""
The commands of this repository: ``python3 dev.py demo``, ``test``, ``check``, ``serve``.

Whatever Python starts this file, even one far too old, it looks for the newest
interpreter that really runs and hands over to ``devtools`` there, which makes the
environment. So there is no syntax here that an old Python could not parse.
"""

from __future__ import print_function

import glob
import json
import os
import subprocess
import sys

OLDEST = (3, 11)
# What may follow "python" in a name; other versions are too old to be asked.
NAMES = ("3", "3.1[1-9]", "3.[2-9][0-9]")
ROOT = os.path.dirname(os.path.abspath(__file__))

# A Python without sqlite3 or ssl can be built and is of no use here. Without
# ensurepip (Debian packages it apart) it can only be used where uv is.
# The answer names the interpreter itself: what was run may be a shim, or belong to
# a virtual environment, which is no place to make another one from.
PROBE = """
import importlib.util, json, sqlite3, ssl, sys
print(json.dumps({
    "version": sys.version_info[:3],
    "final": sys.version_info.releaselevel == "final",
    "has_pip": importlib.util.find_spec("ensurepip") is not None,
    "program": getattr(sys, "_base_executable", sys.executable),
}))
"""


def main(arguments):
    """Run ``devtools`` with the interpreter that is asked for, or with the newest."""
    os.chdir(ROOT)
    wanted = requested_version(arguments)
    interpreter = newest(probe(candidates(wanted)), wanted)
    if interpreter is None:
        print(refusal(wanted), file=sys.stderr)
        return 2
    sys.stdout.flush()
    os.execv(interpreter, [interpreter, "-m", "devtools"] + arguments)
    return 0


def requested_version(arguments):
    """Return what ``--python`` or ``RUNSTORE_PYTHON`` asks for, or an empty string."""
    for position, argument in enumerate(arguments):
        if argument.startswith("--python="):
            return argument.split("=", 1)[1]
        if argument == "--python" and position + 1 < len(arguments):
            return arguments[position + 1]
    return os.environ.get("RUNSTORE_PYTHON", "")


def candidates(wanted):
    """List the programs that may be a Python, each once; many of them will not run."""
    if os.sep in wanted:
        return [wanted]
    home = os.path.expanduser("~")
    pyenv = os.environ.get("PYENV_ROOT", os.path.join(home, ".pyenv"))
    places = [
        os.path.join(folder, "python")
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder
    ]
    places += [
        os.path.join(pyenv, "versions", "*", "bin", "python"),
        os.path.join(home, ".local/share/uv/python/*/bin/python"),
        "/opt/homebrew/opt/python@3.*/bin/python",
    ]
    programs = {}
    for program in [sys.executable] + [
        found for place in places for name in NAMES for found in sorted(glob.glob(place + name))
    ]:
        programs.setdefault(os.path.realpath(program), program)
    return list(programs.values())


def probe(programs):
    """Ask every program at once what it is; return the answers of those that run."""
    started = []
    answers = []
    with open(os.devnull, "r+") as silent:
        for program in programs:
            command = [program, "-I", "-c", PROBE]
            try:
                started.append(
                    subprocess.Popen(command, stdin=silent, stdout=subprocess.PIPE, stderr=silent)
                )
            except OSError:
                continue
        for process in started:
            said = process.communicate()[0]
            if process.returncode == 0:
                try:
                    answers.append(json.loads(said.decode("utf-8")))
                except ValueError:
                    continue
    return answers


def newest(answers, wanted):
    """Pick the newest that is new enough, can be given packages, and is the wanted one."""
    suitable = [
        answer
        for answer in answers
        if answer["final"]
        and tuple(answer["version"][:2]) >= OLDEST
        and matches(answer["version"], wanted)
    ]
    for answer in sorted(suitable, key=lambda found: found["version"], reverse=True):
        if answer["has_pip"] or runs(["uv", "--version"]):
            return answer["program"]
    return None


def matches(version, wanted):
    """Tell whether a version is the wanted one, given as ``3.12`` or as a path."""
    if not wanted or os.sep in wanted:
        return True
    return (".".join(map(str, version)) + ".").startswith(wanted + ".")


def runs(command):
    """Tell whether a command can be started and succeeds."""
    with open(os.devnull, "r+") as silent:
        try:
            return subprocess.call(command, stdin=silent, stdout=silent, stderr=silent) == 0
        except OSError:
            return False


def refusal(wanted):
    """Say what is missing and what to do about it."""
    oldest = ".".join(map(str, OLDEST))
    asked = "Python {} was asked for, and no".format(wanted) if wanted else "No"
    return (
        "{asked} usable Python {oldest} or newer was found (this one is {this}, {program}).\n"
        "It needs the sqlite3 and ssl modules, and ensurepip unless uv is installed.\n"
        "Install one (on Debian: python3 python3-venv), or name it: --python /path/to/python"
    ).format(
        asked=asked,
        oldest=oldest,
        this=".".join(map(str, sys.version_info[:3])),
        program=sys.executable,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
