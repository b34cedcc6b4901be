import json
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_runstore.supervision.protocol import (
    COMMANDS,
    LONGEST_COMMAND_BYTES,
    REPORTS,
    Decoder,
    Finished,
    FrameTooLongError,
    Hello,
    Lapsed,
    MessageReader,
    ProtocolError,
    Ready,
    Settled,
    Start,
    Started,
    Stop,
    encode,
    write_all,
)

HELLO = Hello(
    supervisor_pid=1,
    using="default",
    settings={"DATABASES": {"default": {"NAME": "shop"}}},
    owner={"host_id": "h", "pid": 1, "nonce": "n"},
    sys_path=["", "/srv/shop"],
    python_path=None,
    deadline_fd=5,
    lock_fd=6,
)
COMMANDS_TO_SEND = [HELLO, Start("r", 1, 0), Stop("r", 1, "draining"), Settled("r", 1)]
REPORTS_TO_SEND = [
    Ready(2),
    Started("r", 1),
    Lapsed("r", 1),
    Finished("r", 1, "completed", "{}"),
    Finished("r", 1, "interrupted", None),
]


def frame(value: object) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize("command", COMMANDS_TO_SEND, ids=lambda message: message.type)
def test_every_command_arrives_as_it_was_sent(command):
    decoder = Decoder(COMMANDS, 1_000_000)
    decoder.feed(encode(command))
    assert list(decoder.messages()) == [command]


@pytest.mark.parametrize("report", REPORTS_TO_SEND, ids=lambda message: message.type)
def test_every_report_arrives_as_it_was_sent(report):
    decoder = Decoder(REPORTS, 1_000_000)
    decoder.feed(encode(report))
    assert list(decoder.messages()) == [report]


def test_every_kind_of_message_is_tried_here():
    sent = {type(message) for message in (*COMMANDS_TO_SEND, *REPORTS_TO_SEND)}
    assert sent == {*COMMANDS.values(), *REPORTS.values()}


@given(st.integers(1, 50), st.text(max_size=20))
def test_messages_survive_being_delivered_in_pieces(piece, text):
    stream = b"".join(encode(Stop(text, number, text)) for number in range(3))
    decoder = Decoder(COMMANDS, 1_000_000)
    arrived = []
    for start in range(0, len(stream), piece):
        decoder.feed(stream[start : start + piece])
        arrived += decoder.messages()
    assert arrived == [Stop(text, number, text) for number in range(3)]


def test_a_lone_surrogate_arrives_as_it_was_sent():
    decoder = Decoder(REPORTS, 1_000)
    decoder.feed(encode(Finished("r", 1, "failed", "\ud800")))
    assert next(decoder.messages()).text == "\ud800"


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        b"{",
        b"[" * 100_000,
        [],
        {},
        {"type": "start"},
        {"type": "ready", "pid": 1},
        {"type": []},
        {"type": "start", "run_id": "r", "fence": 1, "slot": 0, "more": 1},
        {"type": "start", "run_id": 1, "fence": 1, "slot": 0},
        {"type": "start", "run_id": "r", "fence": True, "slot": 0},
        {"type": "start", "run_id": "r", "fence": 1.0, "slot": 0},
        {"type": "stop", "run_id": "r", "fence": 1, "reason": "x", "urgent": 1},
    ],
    ids=repr,
)
def test_what_is_no_message_of_the_direction_is_refused(body):
    decoder = Decoder(COMMANDS, 1_000_000)
    decoder.feed(frame(body))
    with pytest.raises(ProtocolError):
        list(decoder.messages())


def test_an_unknown_kind_of_outcome_is_refused():
    decoder = Decoder(REPORTS, 1_000)
    decoder.feed(
        frame({"type": "finished", "run_id": "r", "fence": 1, "kind": "lost", "text": None})
    )
    with pytest.raises(ProtocolError):
        list(decoder.messages())


def test_a_frame_is_refused_by_its_length_before_it_is_read():
    decoder = Decoder(COMMANDS, 100)
    decoder.feed(struct.pack(">I", 101))
    with pytest.raises(ProtocolError):
        list(decoder.messages())


def test_a_command_that_would_not_fit_into_a_pipe_is_not_sent():
    with pytest.raises(FrameTooLongError):
        encode(Stop("r" * LONGEST_COMMAND_BYTES, 1, "draining"))


def test_messages_show_neither_settings_nor_results():
    assert "NAME" not in repr(HELLO)
    assert "secret" not in repr(Finished("r", 1, "completed", '"secret"'))


class TestReader:
    @pytest.fixture
    def pipe(self):
        ends = os.pipe()
        yield ends
        for end in ends:
            try:
                os.close(end)
            except OSError:
                continue

    def test_it_waits_for_one_message_after_the_other(self, pipe):
        write_all(pipe[1], encode(Ready(1)) + encode(Ready(2)))
        reader = MessageReader(pipe[0], REPORTS, 1_000)
        assert [reader.read(), reader.read()] == [Ready(1), Ready(2)]

    def test_it_says_when_the_pipe_was_closed(self, pipe):
        os.close(pipe[1])
        assert MessageReader(pipe[0], REPORTS, 1_000).read() is None

    def test_it_gives_what_has_arrived_without_waiting(self, pipe):
        os.set_blocking(pipe[0], False)
        reader = MessageReader(pipe[0], REPORTS, 1_000)
        assert reader.read_available() == []
        write_all(pipe[1], encode(Ready(1)) + encode(Ready(2))[:5])
        assert reader.read_available() == [Ready(1)]
        assert not reader.at_end

    def test_what_was_said_before_the_end_is_not_lost_with_it(self, pipe):
        os.set_blocking(pipe[0], False)
        write_all(pipe[1], encode(Ready(1)))
        os.close(pipe[1])
        reader = MessageReader(pipe[0], REPORTS, 1_000)
        assert reader.read_available() == [Ready(1)]
        assert reader.at_end
