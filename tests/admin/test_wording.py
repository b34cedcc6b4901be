import pytest

from django_runstore.admin.wording import age, duration, moment, shown_text


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0.0 s"),
        (1_500, "1.5 s"),
        (119_900, "119.9 s"),
        (120_000, "2 min"),
        (7_199_000, "119 min"),
        (7_200_000, "2 h"),
        (172_800_000, "2 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits(ms, words):
    assert duration(ms) == words


def test_a_stamp_from_the_future_is_now():
    assert age(2_000, 1_000) == "0.0 s ago"


def test_a_moment_is_exact_to_the_millisecond():
    assert moment(1_234) == "1970-01-01 00:00:01.234"


def test_a_moment_follows_the_time_zone(settings):
    settings.TIME_ZONE = "Asia/Kolkata"
    assert moment(0) == "1970-01-01 05:30:00.000"


def test_a_moment_does_without_time_zones(settings):
    settings.USE_TZ = False
    assert moment(0).endswith("00.000")


def test_what_a_page_cannot_carry_is_spelled_out():
    assert shown_text("\ud800\u202e\x00a") == r"\ud800\u202e\u0000a"
