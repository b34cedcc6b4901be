"""The unit and the manifest of the guide fit the program that they start."""

import configparser
import json
import re
import shlex
from pathlib import Path

import pytest

from django_runstore.durations import LeaseDurations
from django_runstore.management.commands.runstore_supervise import Command
from django_runstore.supervision.execution import KILL_AFTER_MS
from django_runstore.supervision.loop import LAST_ATTEMPTS_MS, LONGEST_NAP_MS, ExitStatus
from django_runstore.supervision.probe_file import TOUCH_EVERY_MS
from django_runstore.supervision.supervisor import LEAVE_MS

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/run-as-a-service.md"
LEASE = LeaseDurations()


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    return found


@pytest.fixture
def unit():
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string(block("ini"))
    return parser


@pytest.fixture
def manifest():
    """The scalars of the manifest by the path of their keys; lists of commands are JSON."""
    found, path = {}, []
    for line in block("yaml").splitlines():
        text = line.split(" #")[0].rstrip()
        match = re.fullmatch(r"(?P<indent>[ -]*)(?P<key>\w+): *(?P<value>.*)", text)
        if match is None:
            assert not text.strip() or text.strip().startswith("#"), line
            continue
        indent = len(match["indent"])
        path = [(depth, key) for depth, key in path if depth < indent]
        path.append((indent, match["key"]))
        value = match["value"]
        names = ".".join(key for _, key in path)
        found[names] = json.loads(value) if value[:1] in {"[", '"'} or value.isdigit() else value
    return found


def options_of(command):
    """Have the command itself read its arguments."""
    at = command.index("runstore_supervise")
    parser = Command().create_parser("manage.py", "runstore_supervise")
    return parser.parse_args(command[at + 1 :])


def longest_stop_s(grace_ms):
    """The grace, the kill, the patience with the database, and the leave of the workers."""
    assert LEASE.stale_after_ms >= LAST_ATTEMPTS_MS
    return (grace_ms + KILL_AFTER_MS + LEASE.stale_after_ms + LEAVE_MS) / 1000


def test_systemd_waits_for_as_long_as_stopping_can_take(unit):
    service = unit["Service"]
    options = options_of(shlex.split(service["ExecStart"]))
    assert int(service["TimeoutStopSec"]) >= longest_stop_s(options.grace)


def test_systemd_signals_the_supervisor_alone_and_knows_when_it_has_started(unit):
    assert unit["Service"]["KillMode"] == "mixed"
    assert unit["Service"]["Type"] == "exec"


def test_systemd_starts_again_whatever_may_get_better(unit):
    service = unit["Service"]
    assert service["Restart"] == "always"
    final = {int(status) for status in service["RestartPreventExitStatus"].split()}
    # What Django answers to bad arguments and settings, and nothing of the supervisor's own.
    assert final == {1, 2}
    assert final.isdisjoint(int(status) for status in ExitStatus)


def test_kubernetes_waits_for_as_long_as_stopping_can_take(manifest):
    options = options_of(manifest["spec.template.spec.containers.command"])
    patience = manifest["spec.template.spec.terminationGracePeriodSeconds"]
    assert patience >= longest_stop_s(options.grace)


def test_kubernetes_restarts_nothing_that_is_only_late(manifest):
    liveness = manifest["spec.template.spec.containers.livenessProbe.exec.command"][-1]
    (minutes,) = re.findall(r"-mmin -(\d+)", liveness)
    oldest_ms = LONGEST_NAP_MS + TOUCH_EVERY_MS + LEASE.write_tolerance_ms
    assert int(minutes) * 60_000 > 2 * oldest_ms


def test_kubernetes_asks_for_the_file_that_the_supervisor_touches(manifest):
    containers = "spec.template.spec.containers"
    path = options_of(manifest[f"{containers}.command"]).probe_file
    assert manifest[f"{containers}.startupProbe.exec.command"] == ["test", "-e", str(path)]
    assert str(path) in manifest[f"{containers}.livenessProbe.exec.command"][-1]
    assert path.is_relative_to(manifest[f"{containers}.volumeMounts.mountPath"])
