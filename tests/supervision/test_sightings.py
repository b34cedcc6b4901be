import pytest

from django_runstore import OwnerId
from django_runstore.supervision.sightings import Window
from django_runstore.supervision.stale_rows import StaleRow

OWNER = OwnerId("host", 1, "nonce")


def row(run_id, stamp_ms=0, fence=1):
    return StaleRow(run_id, OWNER, stamp_ms, fence)


@pytest.fixture
def window():
    return Window(2)


def examine_all(window):
    for sighting in window.sightings():
        sighting.is_examined = True
    window.move_on()


def test_what_is_seen_first_has_been_unchanged_for_no_time(window):
    window.look([row("a")], 100, 110)
    assert window.unchanged_ms(window.sightings()[0]) <= 0


def test_the_time_of_the_reads_themselves_does_not_count(window):
    window.look([row("a")], 100, 110)
    window.look([row("a")], 300, 399)
    assert window.unchanged_ms(window.sightings()[0]) == 300 - 110


@pytest.mark.parametrize("moved", [row("a", stamp_ms=1), row("a", fence=2)])
def test_a_row_that_moved_is_seen_anew(window, moved):
    window.look([row("a")], 100, 110)
    window.look([moved], 300, 310)
    assert window.sightings()[0].since_ms == 310


def test_a_row_that_is_gone_is_forgotten(window):
    window.look([row("a"), row("b")], 0, 0)
    window.look([row("b")], 1, 1)
    assert [sighting.row.run_id for sighting in window.sightings()] == ["b"]


def test_a_full_window_stays_until_each_of_its_rows_was_examined(window):
    window.look([row("a"), row("b")], 0, 0)
    window.sightings()[0].is_examined = True
    window.move_on()
    assert window.after == ""


def test_a_full_window_moves_on_when_each_of_its_rows_was_examined(window):
    window.look([row("a"), row("b")], 0, 0)
    examine_all(window)
    assert (window.after, window.sightings()) == ("b", [])


def test_rows_that_come_and_go_do_not_hold_the_window(window):
    window.look([row("a"), row("b")], 0, 0)
    window.look([row("a"), row("aa")], 10, 10)
    window.sightings()[0].is_examined = True
    window.move_on()
    assert window.after == "aa"


def test_behind_the_last_row_it_begins_again(window):
    window.look([row("a"), row("b")], 0, 0)
    examine_all(window)
    window.look([row("c")], 10, 10)
    examine_all(window)
    assert (window.after, window.has_been_round) == ("", True)


def test_an_empty_table_is_a_whole_round(window):
    window.look([], 0, 0)
    window.move_on()
    assert window.has_been_round


def test_a_single_window_keeps_what_it_has_seen(window):
    window.look([row("a")], 0, 0)
    examine_all(window)
    assert len(window.sightings()) == 1


def test_what_was_forgotten_is_seen_anew(window):
    window.look([row("a")], 0, 0)
    window.forget()
    window.look([row("a")], 100, 100)
    assert window.sightings()[0].since_ms == 100
