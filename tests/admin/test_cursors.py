import pytest

from django_runstore.admin.cursors import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        (str(2**53 - 1), 2**53 - 1),
        (str(2**53), None),
        ("9" * 17, None),
        ("-1", None),
        ("1.0", None),
        (" 1", None),
        ("1\n", None),
        ("\u0661", None),
        ("", None),
        (None, None),
    ],
)
def test_only_what_could_be_a_sequence_is_read(text, number):
    assert whole_number(text) == number
