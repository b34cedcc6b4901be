import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import pytest

from django_runstore.supervision import shared_deadline
from django_runstore.supervision.shared_deadline import PublishedDeadlines, SharedDeadlines


@pytest.fixture
def deadlines() -> Iterator[SharedDeadlines]:
    with SharedDeadlines(3) as made:
        yield made


@pytest.fixture
def published(deadlines: SharedDeadlines) -> Iterator[PublishedDeadlines]:
    reader = PublishedDeadlines(deadlines.fileno())
    yield reader
    reader.close()


def test_a_fresh_slot_confirms_nobody(published: PublishedDeadlines):
    assert published.confirmed_until_ms(0, "run", 1) is None


def test_a_reader_finds_what_was_published_for_its_grant(deadlines, published):
    deadlines.publish(1, "run", 7, 19_000.9)

    assert published.confirmed_until_ms(1, "run", 7) == 19_000


def test_each_pulse_moves_the_deadline(deadlines, published):
    read = []
    for until_ms in (1_000, 2_000, 3_000, 4_000):
        deadlines.publish(0, "run", 1, until_ms)
        read.append(published.confirmed_until_ms(0, "run", 1))

    assert read == [1_000, 2_000, 3_000, 4_000]


@pytest.mark.parametrize(("run_id", "fence"), [("other", 7), ("run", 8)])
def test_a_deadline_is_never_read_for_another_run_or_grant(deadlines, published, run_id, fence):
    deadlines.publish(0, "run", 7, 19_000)

    assert published.confirmed_until_ms(0, run_id, fence) is None


def test_a_run_of_the_same_fence_takes_over_no_deadline_with_the_slot(deadlines, published):
    deadlines.publish(0, "first", 1, 90_000)
    deadlines.publish(0, "first", 1, 91_000)

    deadlines.publish(0, "second", 1, 20_000)

    assert published.confirmed_until_ms(0, "first", 1) is None
    assert published.confirmed_until_ms(0, "second", 1) == 20_000


def test_slots_do_not_touch_each_other(deadlines, published):
    deadlines.publish(0, "a", 1, 1_000)
    deadlines.publish(1, "b", 1, 2_000)
    deadlines.publish(2, "c", 1, 3_000)

    told = [published.confirmed_until_ms(slot, run, 1) for slot, run in enumerate("abc")]
    assert told == [1_000, 2_000, 3_000]


def test_a_write_that_stops_halfway_leaves_the_previous_deadline(deadlines, published):
    deadlines.publish(0, "run", 1, 1_000)
    deadlines.publish(0, "run", 1, 2_000)
    torn = shared_deadline._encode("run", 1, 3_000)[:20]

    # The second record is the one whose turn it is.
    deadlines._memory[32:52] = torn

    assert published.confirmed_until_ms(0, "run", 1) == 2_000


def test_fields_of_two_records_never_make_a_third(deadlines, published):
    old, new = shared_deadline._encode("run", 1, 1_000), shared_deadline._encode("run", 2, 9_000)

    deadlines._memory[0:64] = (old[:16] + new[16:]) + (new[:16] + old[16:])

    assert published.confirmed_until_ms(0, "run", 1) is None
    assert published.confirmed_until_ms(0, "run", 2) is None


def test_a_reader_beside_a_busy_writer_sees_only_whole_records(deadlines, published):
    # The deadline names its run: any mixture of the two would show.
    stop = threading.Event()

    def write() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            fence = turn % 5
            deadlines.publish(0, "run", fence, fence * 1_000_000 + turn % 1_000)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        mixed = [
            until_ms
            for turn in range(20_000)
            if (until_ms := published.confirmed_until_ms(0, "run", turn % 5)) is not None
            and until_ms // 1_000_000 != turn % 5
        ]
    finally:
        stop.set()
        writer.join()

    assert mixed == []


def test_another_process_reads_through_the_inherited_descriptor(deadlines):
    deadlines.publish(2, "run-ü", 41, 123_456)
    program = (
        "import sys; from django_runstore.supervision.shared_deadline import PublishedDeadlines; "
        "print(PublishedDeadlines(int(sys.argv[1])).confirmed_until_ms(2, 'run-\\u00fc', 41))"
    )

    answer = subprocess.run(
        [sys.executable, "-c", program, str(deadlines.fileno())],
        pass_fds=[deadlines.fileno()],
        capture_output=True,
        text=True,
        check=True,
    )

    assert answer.stdout.strip() == "123456"


def test_a_reader_outlives_the_writer(deadlines, published):
    deadlines.publish(0, "run", 1, 1_000)

    deadlines.close()

    assert published.confirmed_until_ms(0, "run", 1) == 1_000


def test_a_reader_cannot_write(published):
    with pytest.raises(TypeError):
        published._memory[0] = 1


@pytest.mark.parametrize("slot", [-1, 3])
def test_a_slot_that_does_not_exist_is_refused(deadlines, slot):
    with pytest.raises(IndexError):
        deadlines.publish(slot, "run", 1, 1_000)


def test_without_memory_files_an_unlinked_temporary_file_serves(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with SharedDeadlines(1) as deadlines:
        deadlines.publish(0, "run", 1, 1_000)
        reader = PublishedDeadlines(deadlines.fileno())
        assert reader.confirmed_until_ms(0, "run", 1) == 1_000
        reader.close()

    assert list(tmp_path.iterdir()) == []


def test_memory_that_cannot_be_mapped_leaves_no_file_open(monkeypatch):
    def refuse(fd: int, _: int) -> None:
        refused.append(fd)
        raise OSError("no memory")

    refused: list[int] = []
    monkeypatch.setattr("django_runstore.supervision.shared_deadline.mmap.mmap", refuse)

    with pytest.raises(OSError, match="no memory"):
        SharedDeadlines(1)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(refused[0])


def test_closing_twice_is_closing():
    deadlines = SharedDeadlines(1)
    fd = deadlines.fileno()

    deadlines.close()
    deadlines.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
