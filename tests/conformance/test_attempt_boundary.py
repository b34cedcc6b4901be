"""Conformance notes, section M: what an attempt store lets in, and what it says of the rest."""

import datetime as dt
from dataclasses import replace

import pytest

from django_runstore import UNSET, OwnerId
from django_runstore.attempts import AttemptId, AttemptPatch, AttemptRecord, FinishAttempt
from django_runstore.errors import InvalidAttempt
from django_runstore.outcomes import Finished, Inserted, Patched, Updated
from django_runstore.services import AttemptStore
from tests.conformance.attempts import (
    DIGEST,
    FINISHED,
    ID,
    OPERATIONS,
    RUNNING,
    WRITES,
    opened,
    rows,
    started,
)
from tests.conformance.hostile import HOSTILE, Text, touched
from tests.conformance.world import SAFE, A, owner_json

pytestmark = pytest.mark.django_db

IDENTITY = "attempt identity violates the durable identifier contract"
CONTRACT = "attempt violates the persistence contract"
FINISH = "finished attempt violates the contract"
TERMINAL = "finish requires a terminal state and valid timestamp"
OWNER = "owner must be an inert, valid owner identity"
BYTES = "checkpoint exceeds the JSON byte limit"


@pytest.fixture(autouse=True)
def nobody_looked():
    touched.clear()
    yield
    assert touched == []


def refusal(store, operation, **arguments):
    """Have an operation refuse its arguments and change nothing; give what it complained of."""
    before = rows()
    with pytest.raises(InvalidAttempt) as caught:
        OPERATIONS[operation].on(store, **arguments)
    assert rows() == before
    error = caught.value
    prefix = f"invalid_attempt: AttemptStore.{operation}: "
    assert (error.code, error.operation) == ("invalid_attempt", operation)
    assert (error.__cause__, dict(error.detail)) == (None, {})
    assert str(error).startswith(prefix)
    return str(error).removeprefix(prefix)


# --- identities -----------------------------------------------------------------------------


@pytest.mark.conformance(159)
@pytest.mark.parametrize(
    ("operation", "arguments", "message"),
    [
        ("get", {"attempt_id": replace(ID, attempt=-1)}, IDENTITY),
        ("heartbeat", {"attempt": -1}, IDENTITY),
        ("patch", {"attempt_id": replace(ID, attempt=-1)}, IDENTITY),
        ("put", {"attempt": replace(RUNNING, attempt=-1)}, CONTRACT),
        ("finish", {"record": replace(FINISHED, attempt=-1)}, FINISH),
    ],
)
def test_a_negative_attempt_is_named_by_each_operation_in_its_words(operation, arguments, message):
    assert refusal(started(), operation, **arguments) == message


BAD_IDS = [
    {"run_id": ""},
    {"run_id": "x" * 1_025},
    {"run_id": "\0"},
    {"run_id": "\ud800"},
    {"run_id": None},
    {"run_id": b"run"},
    {"step_key_digest": ""},
    {"step_key_digest": 1},
    {"attempt": 1.0},
    {"attempt": True},
    {"attempt": SAFE + 1},
    {"attempt": "0"},
    {"attempt": None},
]


@pytest.mark.conformance(160, 177)
@pytest.mark.parametrize("parts", BAD_IDS)
def test_every_operation_refuses_a_bad_identity(parts):
    store = started()
    assert refusal(store, "get", attempt_id=replace(ID, **parts)) == IDENTITY
    assert refusal(store, "get", attempt_id=replace(RUNNING, **parts)) == IDENTITY
    assert refusal(store, "patch", attempt_id=replace(ID, **parts)) == IDENTITY
    assert refusal(store, "heartbeat", **parts) == IDENTITY
    assert refusal(store, "put", attempt=replace(RUNNING, **parts)) == CONTRACT
    assert refusal(store, "finish", record=replace(FINISHED, **parts)) == FINISH


@pytest.mark.conformance(163, 164, "D13")
@pytest.mark.parametrize(
    "record",
    [
        None,
        dt.date(2026, 1, 1),
        {"run_id": "run", "step_key_digest": DIGEST, "attempt": 0},
        ("run", DIGEST, 0),
        FINISHED,
        object.__new__(AttemptId),
        object.__new__(AttemptRecord),
        AttemptId,
        type("Subclass", (AttemptId,), {})("run", DIGEST, 0),
    ],
    ids=lambda record: type.__repr__(type(record)),
)
def test_only_an_id_or_a_record_is_an_id(record):
    store = started()
    message = "attempt id must be an inert data record"
    assert refusal(store, "get", attempt_id=record) == message
    assert refusal(store, "patch", attempt_id=record) == message


@pytest.mark.conformance(164, 167, "D13")
@pytest.mark.parametrize(
    "record",
    [
        None,
        dt.date(2026, 1, 1),
        {"run_id": "run"},
        ID,
        object.__new__(AttemptRecord),
        object.__new__(FinishAttempt),
        object.__new__(AttemptPatch),
    ],
    ids=lambda record: type.__repr__(type(record)),
)
def test_only_the_records_of_this_package_are_records(record):
    store = started()
    assert refusal(store, "put", attempt=record) == "attempt must be an inert data record"
    assert refusal(store, "finish", record=record) == (
        "finished attempt must be an inert data record"
    )
    assert refusal(store, "patch", patch=record) == "attempt patch must be an inert data record"


@pytest.mark.conformance(163, 164, 165)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_code_of_a_record_or_an_owner_is_run(name):
    store = started()
    make = HOSTILE[name]
    assert refusal(store, "get", attempt_id=make()) == "attempt id must be an inert data record"
    assert refusal(store, "put", attempt=make()) == "attempt must be an inert data record"
    assert refusal(store, "finish", record=make()) == (
        "finished attempt must be an inert data record"
    )
    assert refusal(store, "patch", patch=make()) == "attempt patch must be an inert data record"
    for operation in WRITES:
        assert refusal(store, operation, owner=make()) == OWNER


# --- owners, fences and times ---------------------------------------------------------------


@pytest.mark.conformance(165, "D13")
@pytest.mark.parametrize("operation", WRITES)
@pytest.mark.parametrize(
    "owner",
    [
        None,
        UNSET,
        "owner-a",
        owner_json(A),
        (A.host_id, A.pid, A.nonce),
        object.__new__(OwnerId),
        OwnerId("h", -1, "n"),
        OwnerId("h", 1.5, "n"),
        OwnerId("h", True, "n"),
        OwnerId("", 1, "n"),
        OwnerId("h", 1, ""),
        OwnerId("h", 1, None),
    ],
    ids=lambda owner: type.__repr__(type(owner)),
)
def test_every_write_refuses_what_is_no_owner(operation, owner):
    assert refusal(started(), operation, owner=owner) == OWNER


@pytest.mark.parametrize("fence", [-1, 1.0, True, "1", SAFE + 1, UNSET])
@pytest.mark.parametrize("operation", WRITES)
def test_every_write_refuses_what_is_no_fence(operation, fence):
    message = "fence must be a non-negative safe integer"
    assert refusal(started(), operation, fence=fence) == message


@pytest.mark.conformance(160)
@pytest.mark.parametrize("time", [float("nan"), -1, 1.0, True, "1", SAFE + 1, None])
def test_every_time_is_a_safe_integer_or_where_it_may_be_absent(time):
    store = started()
    assert refusal(store, "heartbeat", now_ms=time) == "now_ms must be a non-negative safe integer"
    assert refusal(store, "finish", record=replace(FINISHED, finished_at_ms=time)) == FINISH
    for field in ("started_at_ms", "finished_at_ms", "heartbeat_at_ms"):
        assert refusal(store, "put", attempt=replace(RUNNING, **{field: time})) == CONTRACT


@pytest.mark.conformance(160, 167)
@pytest.mark.parametrize("state", ["", None, 1, "x" * 1_025, "a\0", "\ud800"])
def test_a_state_is_durable_text(state):
    store = started()
    assert refusal(store, "put", attempt=replace(RUNNING, state=state)) == CONTRACT
    assert refusal(store, "finish", record=replace(FINISHED, state=state)) == FINISH


@pytest.mark.conformance(160, 170)
def test_an_attempt_is_not_finished_into_a_state_that_is_in_progress():
    assert refusal(started(), "finish", record=replace(FINISHED, state="running")) == TERMINAL
    store = AttemptStore(in_progress_states=["in-progress", "paused"])
    assert refusal(store, "finish", record=replace(FINISHED, state="paused")) == TERMINAL


@pytest.mark.conformance(160)
def test_meta_cannot_be_absent():
    assert refusal(opened(), "put", attempt=replace(RUNNING, meta=UNSET)) == CONTRACT


@pytest.mark.parametrize("name", [None, 1, "a\0", "x" * 1_025])
def test_a_step_name_is_durable_text_or_empty(name):
    assert refusal(opened(), "put", attempt=replace(RUNNING, step_name=name)) == CONTRACT


# --- values ---------------------------------------------------------------------------------

UNSUPPORTED = [
    (float("inf"), "contains a non-finite number"),
    (b"bytes", "contains a non-JSON bytes"),
    (len, "contains a non-JSON function"),
    ("\ud800", "contains unbounded or ill-formed text"),
    ({1: 2}, "contains an unbounded or ill-formed object key"),
    ({"a": {1, 2}}, "contains a non-plain object"),
    (dt.date(2026, 1, 1), "contains a non-plain object"),
]


@pytest.mark.conformance(160, 167)
@pytest.mark.parametrize(("value", "complaint"), UNSUPPORTED)
def test_every_value_is_json(value, complaint):
    store = started()
    for field in ("checkpoint", "error", "outcome", "meta"):
        message = f"{field} {complaint}"
        assert refusal(store, "put", attempt=replace(RUNNING, **{field: value})) == message
        assert refusal(store, "patch", patch=AttemptPatch(**{field: value})) == message
        if field != "checkpoint":
            assert refusal(store, "finish", record=replace(FINISHED, **{field: value})) == message
    assert refusal(store, "heartbeat", checkpoint=value) == f"checkpoint {complaint}"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_code_of_a_value_is_run(name):
    store = started()
    for field in ("checkpoint", "error", "outcome", "meta"):
        value = {"a": [HOSTILE[name]()]}
        assert refusal(store, "put", attempt=replace(RUNNING, **{field: value})).startswith(field)


@pytest.mark.conformance(176)
@pytest.mark.parametrize(
    ("checkpoint", "fits"),
    [("x" * 30, True), ("é" * 15, True), ("x" * 31, False), ("é" * 16, False), ([1.0] * 15, True)],
    ids=["30 ASCII", "15 é", "31 ASCII", "16 é", "15 whole floats"],
)
def test_a_checkpoint_is_charged_in_bytes(checkpoint, fits):
    store = started(max_checkpoint_bytes=32)
    put = replace(RUNNING, attempt=1, checkpoint=checkpoint)
    if fits:
        assert store.put(put, A) == Inserted()
        assert store.heartbeat("run", DIGEST, 0, A, 12, checkpoint) == Updated()
        assert store.patch(ID, AttemptPatch(checkpoint=checkpoint), A) == Patched()
        assert store.get(ID).checkpoint == checkpoint
    else:
        text = "checkpoint contains unbounded or ill-formed text"
        assert refusal(store, "put", attempt=put) == text
        assert refusal(store, "heartbeat", checkpoint=checkpoint) == text
        assert refusal(store, "patch", patch=AttemptPatch(checkpoint=checkpoint)) == text


@pytest.mark.conformance(160, 177)
def test_a_checkpoint_over_a_mebibyte_is_refused_unless_the_store_says_otherwise():
    store = started()
    assert refusal(store, "heartbeat", checkpoint=["x" * 600_000] * 2) == BYTES
    assert refusal(store, "patch", patch=AttemptPatch(checkpoint=["x" * 600_000] * 2)) == BYTES
    assert refusal(store, "put", attempt=replace(RUNNING, checkpoint=["x" * 600_000] * 2)) == BYTES


@pytest.mark.conformance(176, 181)
def test_eight_mebibytes_admit_a_checkpoint_of_two():
    store = started(max_checkpoint_bytes=8 * 2**20)
    assert store.heartbeat("run", DIGEST, 0, A, 12, "x" * 2**21) == Updated()
    # A store with a smaller maximum reads what others were allowed to write.
    assert AttemptStore(max_checkpoint_bytes=1).get(ID).checkpoint == "x" * 2**21


@pytest.mark.conformance(181)
def test_meta_error_and_outcome_have_no_byte_limit():
    store = opened()
    wide = "ü" * 2**20
    put = replace(RUNNING, meta=wide, error=[wide], outcome={"k": wide})
    assert store.put(put, A) == Inserted()
    assert store.get(ID) == put
    assert store.put(put, A).code == "existing_same"


def test_no_checkpoint_is_stored_that_could_not_be_read():
    # 1.0 is charged one byte, as JavaScript writes it, and stored as three.
    text = 2**24 - 2 - 2 - 1 - 2 * 90_000
    store = started(max_checkpoint_bytes=2**24)
    checkpoint = ["x" * (text - 2), *[1.0] * 90_000]
    assert refusal(store, "heartbeat", checkpoint=checkpoint) == BYTES
    assert refusal(store, "put", attempt=replace(RUNNING, checkpoint=checkpoint)) == BYTES


def test_what_is_stored_is_compact_and_not_escaped():
    store = opened()
    store.put(replace(RUNNING, meta={"b": "é", "a": (1, 2)}, checkpoint="\0"), A)
    (row,) = rows()
    assert row["meta_json"] == '{"b":"é","a":[1,2]}'
    assert row["checkpoint_json"] == '"\\u0000"'
    assert store.get(ID).checkpoint == "\0"


# --- what is copied -------------------------------------------------------------------------


@pytest.mark.conformance(166)
def test_an_owner_of_text_subclasses_is_the_owner_that_it_shows():
    owner = OwnerId(Text("host-a"), 101, Text("owner-a"))
    store = opened()
    assert store.put(RUNNING, owner) == Inserted()
    assert store.heartbeat("run", DIGEST, 0, owner, 12) == Updated()
    assert store.patch(ID, AttemptPatch(error=1), owner) == Patched()
    assert store.finish(FINISHED, owner) == Finished()


def test_what_was_put_is_not_what_the_caller_goes_on_changing():
    store = opened()
    meta = {"list": [1]}
    store.put(replace(RUNNING, meta=meta), A)
    meta["list"].append(2)
    assert store.get(ID).meta == {"list": [1]}


# --- the order in which arguments are judged (spec 5.3) -------------------------------------


def test_put_judges_owner_shape_values_contract_limit_and_fence():
    store = started(max_checkpoint_bytes=32)
    bad = {"checkpoint": b"", "error": b"", "outcome": b"", "meta": b"", "state": ""}
    steps = [
        ({"owner": None, "attempt": None, "fence": -1}, OWNER),
        ({"attempt": None, "fence": -1}, "attempt must be an inert data record"),
    ]
    steps += [
        ({"attempt": replace(RUNNING, **dict(list(bad.items())[n:])), "fence": -1}, message)
        for n, message in enumerate(
            [*(f"{field} contains a non-JSON bytes" for field in list(bad)[:4]), CONTRACT]
        )
    ]
    too_long = {"checkpoint": ["x" * 20] * 2}
    steps += [
        ({"attempt": replace(RUNNING, state="", **too_long), "fence": -1}, CONTRACT),
        ({"attempt": replace(RUNNING, **too_long), "fence": -1}, BYTES),
        ({"fence": -1}, "fence must be a non-negative safe integer"),
    ]
    for arguments, message in steps:
        assert refusal(store, "put", **arguments) == message


def test_a_checkpoint_over_the_hard_limit_comes_before_the_contract():
    put = replace(RUNNING, state="", checkpoint=["x" * 2**23] * 2)
    assert refusal(started(), "put", attempt=put) == BYTES


def test_heartbeat_judges_owner_identity_time_checkpoint_and_fence():
    store = started()
    bad = {"owner": None, "run_id": "", "now_ms": -1, "checkpoint": b"", "fence": -1}
    messages = [
        OWNER,
        IDENTITY,
        "now_ms must be a non-negative safe integer",
        "checkpoint contains a non-JSON bytes",
        "fence must be a non-negative safe integer",
    ]
    for n, message in enumerate(messages):
        assert refusal(store, "heartbeat", **dict(list(bad.items())[n:])) == message


def test_finish_judges_owner_shape_values_contract_state_and_fence():
    store = started()
    bad = {"error": b"", "outcome": b"", "meta": b"", "attempt": -1, "state": "running"}
    assert refusal(store, "finish", owner=None, record=None, fence=-1) == OWNER
    assert refusal(store, "finish", record=None, fence=-1) == (
        "finished attempt must be an inert data record"
    )
    messages = [*(f"{f} contains a non-JSON bytes" for f in list(bad)[:3]), FINISH, TERMINAL]
    for n, message in enumerate(messages):
        record = replace(FINISHED, **dict(list(bad.items())[n:]))
        assert refusal(store, "finish", record=record, fence=-1) == message


def test_patch_judges_owner_id_patch_and_fence():
    store = started()
    bad = {"owner": None, "attempt_id": None, "patch": None, "fence": -1}
    messages = [
        OWNER,
        "attempt id must be an inert data record",
        "attempt patch must be an inert data record",
        "fence must be a non-negative safe integer",
    ]
    for n, message in enumerate(messages):
        assert refusal(store, "patch", **dict(list(bad.items())[n:])) == message


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_asked_of_the_database_for_a_bad_argument(operation, django_assert_num_queries):
    store = started()
    first = next(iter(OPERATIONS[operation].arguments))
    with django_assert_num_queries(0), pytest.raises(InvalidAttempt):
        OPERATIONS[operation].on(store, **{first: object()})
