"""What others chose is shown on one line and bounded."""

import pytest

from django_runstore.display_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("report-2026-10", "report-2026-10"),
        ("Übung 😀", "Übung 😀"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a" * 80, "a" * 80),
        ("a" * 81, "a" * 79 + "…"),
    ],
)
def test_text_stays_on_one_line(text, shown):
    assert printable(text) == shown
