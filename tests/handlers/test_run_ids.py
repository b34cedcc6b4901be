import uuid

from django_runstore.handlers import run_ids
from django_runstore.handlers.run_ids import new_run_id


def test_an_id_is_a_uuid_of_version_seven():
    made = uuid.UUID(new_run_id())
    assert made.version == 7
    assert made.variant == uuid.RFC_4122


def test_ids_sort_by_the_millisecond_they_were_made_in(monkeypatch):
    moments = [1, 255, 256, 65_536, 1_764_547_200_000, 2**48 - 1]
    made = []
    for moment in moments:
        monkeypatch.setattr(run_ids.time, "time_ns", lambda moment=moment: moment * 1_000_000)
        made.append(new_run_id())
    assert made == sorted(made)
    assert [uuid.UUID(text).int >> 80 for text in made] == moments


def test_ids_made_in_a_row_are_in_that_order(monkeypatch):
    quarter_of_a_microsecond = 1_000_000 // 4_096 + 1
    made = []
    for step in range(10_000):
        moment = step * quarter_of_a_microsecond
        monkeypatch.setattr(run_ids.time, "time_ns", lambda moment=moment: moment)
        made.append(new_run_id())
    assert made == sorted(made)
    assert {uuid.UUID(text).version for text in made} == {7}


def test_ids_of_one_moment_differ(monkeypatch):
    monkeypatch.setattr(run_ids.time, "time_ns", lambda: 0)
    assert len({new_run_id() for _ in range(1_000)}) == 1_000
