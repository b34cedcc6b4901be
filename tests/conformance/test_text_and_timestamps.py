"""Conformance notes, section A: durable text and integer timestamps."""

import pytest

from django_runstore import InvalidRun
from tests.conformance.world import A, P, World

LONE_HIGH, LONE_LOW = "run-\ud800", "run-\udc00"


@pytest.mark.conformance(1)
def test_every_stamp_of_the_clock_is_a_floored_integer(world: World):
    world.clock.set(10.5)
    world.store.create("run", "{}")
    claimed = world.store.claim("run", P, A, 10)
    world.store.activate("run", A, claimed.claimed_at_ms, P)
    world.clock.advance(1)
    world.store.transition_owned("run", A, "completed")

    row = world.store.get("run")
    stamps = (row.created_at_ms, row.started_at_ms, row.finished_at_ms)
    assert stamps == (10, 10, 11)
    assert [type(stamp) for stamp in stamps] == [int, int, int]


@pytest.mark.conformance(2)
@pytest.mark.parametrize("run_id", [LONE_HIGH, LONE_LOW])
def test_a_lone_surrogate_is_refused_in_a_run_id(store, run_id):
    with pytest.raises(InvalidRun) as caught:
        store.create(run_id, "{}")
    assert caught.value.operation == "create"
    assert caught.value.detail == {
        "field": "run_id",
        "detail": "must be well-formed durable text",
    }


@pytest.mark.conformance(3)
@pytest.mark.parametrize(
    ("state", "options"),
    [
        ("{}", {"parent_run_id": LONE_HIGH}),
        ("{}", {"lineage_id": LONE_LOW, "round_ordinal": 0}),
        ('"\ud800"', {}),
        ('{"key\udc00": 1}', {}),
    ],
)
def test_a_lone_surrogate_is_refused_in_every_text_of_create(store, state, options):
    with pytest.raises(InvalidRun, match=r"^invalid_run: RunStore.create: run input is invalid$"):
        store.create("run", state, **options)


@pytest.mark.conformance(4)
def test_the_replacement_character_is_text_like_any_other(store):
    store.create("run-\ufffd", "{}")
    assert store.get("run-\ufffd").run_id == "run-\ufffd"


@pytest.mark.conformance(5)
def test_an_astral_character_comes_back_byte_for_byte(store):
    store.create("run-😀", "{}")
    assert store.get("run-😀").run_id.encode() == "run-😀".encode()


@pytest.mark.conformance(6)
def test_a_refused_state_leaves_the_stored_one_alone(world: World):
    world.active(A)
    with pytest.raises(InvalidRun) as caught:
        world.store.transition_owned("run", A, "running", '"\ud800"')
    assert caught.value.operation == "transition_owned"
    assert world.store.get("run").state_json == "{}"


@pytest.mark.conformance("D8")
@pytest.mark.parametrize(
    "run_id",
    [
        pytest.param("x" * 1_024, id="1,024 units"),
        pytest.param("😀" * 512, id="512 astral characters are 1,024 units and 2,048 bytes"),
        pytest.param("字" * 682 + "xx", id="2,048 bytes of CJK"),
    ],
)
def test_the_longest_ids_round_trip(store, run_id):
    store.create(run_id, "{}")
    assert store.get(run_id).run_id == run_id


@pytest.mark.conformance("D8")
@pytest.mark.parametrize(
    "run_id",
    [
        pytest.param("", id="empty"),
        pytest.param("x" * 1_025, id="1,025 units"),
        pytest.param("😀" * 512 + "x", id="512 astral characters and one more"),
        pytest.param("字" * 682 + "xxx", id="2,049 bytes of CJK"),
        pytest.param("a\0b", id="NUL"),
    ],
)
def test_ids_one_past_a_limit_are_refused(store, run_id):
    with pytest.raises(InvalidRun):
        store.create(run_id, "{}")
