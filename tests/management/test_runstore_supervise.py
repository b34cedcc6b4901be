import logging
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command

from django_runstore.management.commands import runstore_supervise
from django_runstore.supervision.loop import ExitStatus
from django_runstore.supervision.shared_settings import UnsharableSettingsError


@pytest.fixture
def supervised(monkeypatch):
    """Collects the options of supervisors that do nothing; set ``end`` to choose how they end."""

    class Recorder(list):
        end = ExitStatus.DONE

    recorder = Recorder()

    class FakeSupervisor:
        def __init__(self, options):
            recorder.append(options)

        def run(self):
            logging.getLogger("django_runstore.supervision").info("supervising")
            if isinstance(recorder.end, Exception):
                raise recorder.end
            return recorder.end

    monkeypatch.setattr(runstore_supervise, "Supervisor", FakeSupervisor)
    return recorder


def test_the_options_reach_the_supervisor(supervised):
    call_command(
        "runstore_supervise",
        "--concurrency=3",
        "--queues=a, b",
        "--grace=1.5",
        "--drain",
        "--database=default",
        verbosity=0,
    )
    (options,) = supervised
    assert (options.concurrency, options.queues, options.grace_ms) == (3, ("a", "b"), 1_500)
    assert (options.drain, options.once, options.using) == (True, False, "default")


def test_the_grace_is_that_of_the_settings_unless_told(supervised, settings):
    settings.RUNSTORE = {"STOP_GRACE_MS": 1_234}
    call_command("runstore_supervise", verbosity=0)
    (options,) = supervised
    assert options.grace_ms == 1_234
    assert options.concurrency >= 1
    assert options.queues is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--concurrency=0"],
        ["--concurrency=many"],
        ["--grace=-1"],
        ["--grace=nan"],
        ["--grace=inf"],
        ["--queues=,"],
        ["--database=nowhere"],
        ["--drain", "--once"],
    ],
    ids=" ".join,
)
def test_unusable_arguments_are_refused_before_anything_starts(supervised, arguments):
    with pytest.raises(CommandError):
        call_command("runstore_supervise", *arguments)
    assert supervised == []


@pytest.mark.parametrize("status", [3, 4, 70])
def test_how_it_ended_is_the_exit_status(supervised, status):
    supervised.end = ExitStatus(status)
    with pytest.raises(SystemExit) as ended:
        call_command("runstore_supervise", verbosity=0)
    assert ended.value.code == status


@pytest.mark.parametrize(
    "error", [UnsharableSettingsError("name a file"), PermissionError(13, "denied", "/run")]
)
def test_what_the_operator_has_to_change_is_said_without_a_traceback(supervised, error):
    supervised.end = error
    with pytest.raises(CommandError, match=r"name a file|denied"):
        call_command("runstore_supervise", verbosity=0)


@contextmanager
def unheard_logger():
    """Take away every handler that the package's log records reach, pytest's too."""
    logger = logging.getLogger("django_runstore")
    before = logger.propagate, logger.handlers
    logger.propagate, logger.handlers = False, []
    try:
        yield logger
    finally:
        logger.propagate, logger.handlers = before


class TestLogLines:
    def test_they_are_printed_with_their_time(self, supervised, capsys):
        with unheard_logger():
            call_command("runstore_supervise")
        line = capsys.readouterr().out
        assert line.endswith("supervising\n")
        assert line[2] == line[5] == ":"

    def test_they_are_the_projects_where_it_has_a_handler(self, supervised, capsys):
        with unheard_logger() as logger:
            logger.addHandler(logging.NullHandler())
            call_command("runstore_supervise")
        assert capsys.readouterr().out == ""

    def test_the_logger_is_left_as_it_was(self, supervised):
        with unheard_logger() as logger:
            before = logger.level
            call_command("runstore_supervise")
            assert (logger.level, logger.handlers) == (before, [])

    def test_silence_can_be_asked_for(self, supervised, capsys):
        with unheard_logger():
            call_command("runstore_supervise", verbosity=0)
        assert capsys.readouterr().out == ""
