import os
import signal
import time

import pytest

from django_runstore.supervision import pauses
from django_runstore.supervision.probe_file import ProbeFile
from tests.supervision.processes import until


@pytest.fixture
def hands(monkeypatch):
    class Hands:
        ms = 0.0

    monkeypatch.setattr(pauses, "boottime_ms", lambda: Hands.ms)
    return Hands


def age(path):
    """Make the file old, so that a touch shows."""
    os.utime(path, (0, 0))


def is_young(path):
    return path.stat().st_mtime > 0


def test_the_file_is_touched_once_per_second_while_all_is_well(tmp_path, hands):
    path, well = tmp_path / "probe", [True]
    probe = ProbeFile(path, lambda: well[0])
    probe.create()
    touched = []
    for well[0], hands.ms in [(True, 0), (True, 999), (True, 1_000), (False, 2_000), (True, 2_001)]:
        age(path)
        probe.turn()
        touched.append(is_young(path))
    assert touched == [True, False, True, False, True]


def test_a_folder_that_is_away_is_told_once_and_does_not_matter(tmp_path, hands, caplog):
    folder = tmp_path / "folder"
    folder.mkdir()
    probe = ProbeFile(folder / "probe", lambda: True)
    folder.rmdir()
    for hands.ms in (0, 1_000, 2_000):
        probe.turn()
    assert caplog.messages == ["the probe file could not be touched: No such file or directory"]
    folder.mkdir()
    hands.ms = 3_000
    probe.turn()
    assert (folder / "probe").exists()


def test_a_file_that_cannot_be_made_is_known_at_the_start(tmp_path):
    with pytest.raises(FileNotFoundError):
        ProbeFile(tmp_path / "missing" / "probe", lambda: True).create()


def test_removing_it_fails_nothing(tmp_path, caplog):
    probe = ProbeFile(tmp_path, lambda: True)
    probe.remove()
    assert len(caplog.messages) == 1
    ProbeFile(tmp_path / "gone", lambda: True).remove()
    assert len(caplog.messages) == 1


@pytest.mark.django_db(transaction=True)
def test_a_supervisor_keeps_its_file_young_and_takes_it_away(supervise, tmp_path):
    path = tmp_path / "probe"
    supervisor = supervise("--concurrency", "1", "--probe-file", str(path))
    supervisor.says("worker 1 is ready")
    for _ in range(2):
        age(path)
        until(lambda: is_young(path))
    supervisor.process.terminate()
    assert supervisor.wait() == 0
    assert not path.exists()


@pytest.mark.django_db(transaction=True)
def test_a_stopped_supervisor_lets_its_file_grow_old(supervise, tmp_path):
    path = tmp_path / "probe"
    supervisor = supervise("--concurrency", "1", "--probe-file", str(path))
    supervisor.says("worker 1 is ready")
    supervisor.signal(signal.SIGSTOP)
    age(path)
    # That something does not happen can only be waited out.
    time.sleep(3)
    assert not is_young(path)
    supervisor.signal(signal.SIGCONT)
    until(lambda: is_young(path))


@pytest.mark.django_db(transaction=True)
def test_a_probe_file_that_cannot_be_made_ends_the_supervisor_with_1(supervise, tmp_path):
    supervisor = supervise("--probe-file", str(tmp_path / "missing" / "probe"))
    assert supervisor.wait() == 1
    assert "the probe file" in supervisor.log
