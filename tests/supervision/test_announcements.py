import logging

import pytest

from django_runstore.supervision.announcements import LineFormatter


def line(message, **facts):
    record = logging.makeLogRecord({"msg": message, "levelname": "WARNING", **facts})
    time, _, text = LineFormatter().format(record).partition(" ")
    assert len(time) == len("12:34:56.789")
    return text


@pytest.mark.parametrize(
    ("message", "facts", "expected"),
    [
        ("supervisor a", {}, "supervisor a"),
        ("run r: put back", {"run_id": "r", "fence": 2, "handler": "h"}, "run r: put back"),
        (
            "run lease lapsed; interrupting owned work",
            {"run_id": "r", "unconfirmed_ms": 1_400},
            "run lease lapsed; interrupting owned work (run_id r, unconfirmed_ms 1400)",
        ),
        ("run pulse was late", {"runs": 2, "late_ms": 0}, "run pulse was late (runs 2, late_ms 0)"),
        ("run lease reconfirmed", {"run_id": "a\nb"}, "run lease reconfirmed (run_id a\\nb)"),
    ],
)
def test_a_line_says_which_run_and_how_long(message, facts, expected):
    assert line(message, **facts) == expected
