"""Evidence is gathered for stale rows of dead owners, and for nothing else."""

import json
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from django_runstore.durations import STALE_AFTER_MS
from django_runstore.evidence import EvidenceKind, LivenessEvidence, matches_evidence
from django_runstore.liveness import (
    LivenessContext,
    LivenessVerdict,
    OwnerLock,
    gather_claim_evidence,
    gather_evidence,
)
from django_runstore.owners import OwnerId
from django_runstore.testing import FakeClock

NOW = 100_000
STALE_STAMP = NOW - STALE_AFTER_MS - 1
HERE = "tests.liveness.test_gather"
STRANGER = OwnerId("another-host", 4102, "n1")


@dataclass(frozen=True)
class Row:
    """The part of a run row that is looked at."""

    owner: OwnerId | None = None
    heartbeat_at_ms: int | None = None
    claim: OwnerId | None = None
    claimed_at_ms: int | None = None
    status: str = "running"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOW + 0.75)


@pytest.fixture
def checks(settings, monkeypatch: pytest.MonkeyPatch):
    """Configure functions as liveness checks, in order."""

    def configure(*functions: object) -> None:
        paths = {f"tests.checks_{i}": function for i, function in enumerate(functions)}
        monkeypatch.setattr("django_runstore.liveness.gather.import_string", paths.__getitem__)
        settings.RUNSTORE = {"LIVENESS": list(paths)}

    return configure


def gather(row: Row, observer: OwnerId, clock: FakeClock) -> LivenessEvidence | None:
    return gather_evidence(row, observer, clock)  # type: ignore[arg-type]


class TestRunningRow:
    def test_dead_process_on_the_same_host(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock
    ):
        found = gather(Row(dead_owner, STALE_STAMP), observer, clock)
        assert found == LivenessEvidence(
            dead_owner,
            NOW,
            EvidenceKind.SAME_HOST_PID_DEAD,
            {
                "age_ms": STALE_AFTER_MS + 1,
                "pid": dead_owner.pid,
                "process": "gone",
                "reason": "no-such-process",
                "lock": "not-announced",
            },
        )

    def test_owner_on_another_host(self, observer: OwnerId, clock: FakeClock):
        found = gather(Row(STRANGER, STALE_STAMP), observer, clock)
        assert found is not None
        assert found.kind == EvidenceKind.CROSS_HOST_UNREACHABLE_STALE
        assert found.observed == {"age_ms": STALE_AFTER_MS + 1, "host": "other"}

    @pytest.mark.parametrize("stale_by_ms", [0, -1])
    def test_stamp_that_is_not_strictly_older_is_no_evidence(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock, stale_by_ms: int
    ):
        stamp_ms = NOW - STALE_AFTER_MS - stale_by_ms
        assert gather(Row(dead_owner, stamp_ms), observer, clock) is None

    def test_owner_that_lives_on_this_host_is_never_evidence_however_old_its_stamp(
        self, observer: OwnerId, clock: FakeClock
    ):
        clock.set(10**12)
        assert gather(Row(OwnerId.for_this_process(), 0), observer, clock) is None

    def test_stopped_owner_keeps_its_run_on_this_host(
        self, child: subprocess.Popen[bytes], observer: OwnerId, clock: FakeClock
    ):
        child.send_signal(signal.SIGSTOP)
        owner = OwnerId(observer.host_id, child.pid, "n1")
        assert gather(Row(owner, STALE_STAMP), observer, clock) is None

    def test_stopped_owner_loses_its_run_to_another_host(
        self, child: subprocess.Popen[bytes], clock: FakeClock
    ):
        child.send_signal(signal.SIGSTOP)
        owner = OwnerId("h1", child.pid, "n1")
        assert gather(Row(owner, STALE_STAMP), OwnerId("h2", 1, "n2"), clock) is not None

    def test_gone_owner_with_a_working_worker_is_no_evidence(
        self, runtime_dir: Path, dead_pid: int, observer: OwnerId, clock: FakeClock
    ):
        owner = OwnerId.for_this_process(announces_lock=True)
        gone = OwnerId(owner.host_id, dead_pid, owner.nonce)
        with OwnerLock.acquire(owner):
            assert gather(Row(gone, STALE_STAMP), observer, clock) is None
        found = gather(Row(gone, STALE_STAMP), observer, clock)
        assert found is not None
        assert found.observed is not None
        assert found.observed["lock"] == "free"

    @pytest.mark.parametrize(
        "row",
        [
            Row(status="pending"),
            Row(STRANGER, STALE_STAMP, status="suspended"),
            Row(STRANGER, None),
            Row(None, STALE_STAMP),
        ],
        ids=str,
    )
    def test_row_that_nobody_runs_needs_no_evidence(
        self, row: Row, observer: OwnerId, clock: FakeClock
    ):
        assert gather(row, observer, clock) is None

    def test_evidence_matches_at_its_own_reading(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock
    ):
        for owner in (dead_owner, STRANGER):
            found = gather(Row(owner, STALE_STAMP), observer, clock)
            assert found is not None
            assert matches_evidence(owner, observer, found.checked_at_ms, found)


class TestClaim:
    def test_stale_claim_of_a_dead_process(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock
    ):
        row = Row(claim=dead_owner, claimed_at_ms=STALE_STAMP, status="pending")
        found = gather_claim_evidence(row, observer, clock)  # type: ignore[arg-type]
        assert found is not None
        assert (found.expected_owner, found.kind) == (dead_owner, EvidenceKind.SAME_HOST_PID_DEAD)

    def test_fresh_claim_is_no_evidence(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock
    ):
        row = Row(claim=dead_owner, claimed_at_ms=STALE_STAMP + 1, status="pending")
        assert gather_claim_evidence(row, observer, clock) is None  # type: ignore[arg-type]

    def test_claim_is_judged_by_its_own_stamp_and_holder(
        self, dead_owner: OwnerId, observer: OwnerId, clock: FakeClock
    ):
        row = Row(OwnerId.for_this_process(), NOW, claim=dead_owner, claimed_at_ms=STALE_STAMP)
        assert gather_claim_evidence(row, observer, clock) is not None  # type: ignore[arg-type]

    def test_run_without_a_claim_needs_no_evidence(self, observer: OwnerId, clock: FakeClock):
        row = Row(STRANGER, STALE_STAMP)
        assert gather_claim_evidence(row, observer, clock) is None  # type: ignore[arg-type]


class TestChecks:
    def test_every_check_must_call_the_owner_dead(
        self, checks, observer: OwnerId, clock: FakeClock
    ):
        checks(lambda *_: False, lambda *_: True)
        assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is None

    def test_all_checks_agreeing_is_evidence(self, checks, observer: OwnerId, clock: FakeClock):
        checks(lambda *_: False, lambda *_: False)
        assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is not None

    def test_check_that_breaks_is_life(
        self, checks, observer: OwnerId, clock: FakeClock, caplog: pytest.LogCaptureFixture
    ):
        def broken(owner: OwnerId, context: LivenessContext) -> bool:
            raise RuntimeError("password=hunter2")

        checks(broken)
        assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is None
        (record,) = caplog.records
        assert "hunter2" not in str(vars(record))

    def test_check_that_cannot_be_imported_is_life(
        self, settings, observer: OwnerId, clock: FakeClock
    ):
        settings.RUNSTORE = {"LIVENESS": ["nowhere.at.all"]}
        assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is None

    @pytest.mark.parametrize("answer", [None, 0, "", []])
    def test_anything_but_false_is_life(
        self, checks, observer: OwnerId, clock: FakeClock, answer: object
    ):
        checks(lambda *_: answer)
        assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is None

    def test_check_is_told_who_asks_and_what_the_row_says(
        self, checks, observer: OwnerId, clock: FakeClock
    ):
        told: list[object] = []

        def check(*arguments: object) -> bool:
            told.extend(arguments)
            return False

        checks(check)
        gather(Row(STRANGER, STALE_STAMP), observer, clock)
        assert told == [STRANGER, LivenessContext(observer, STALE_STAMP, NOW)]

    def test_same_host_without_a_look_at_the_process_is_only_an_expired_lease(
        self, settings, observer: OwnerId, clock: FakeClock
    ):
        settings.RUNSTORE = {"LIVENESS": ["django_runstore.liveness.unexpired_lease"]}
        found = gather(Row(OwnerId.for_this_process(), STALE_STAMP), observer, clock)
        assert found is not None
        assert found.kind == EvidenceKind.LEASE_EXPIRED

    def test_fresh_stamp_asks_no_check(self, checks, observer: OwnerId, clock: FakeClock):
        checks(lambda *_: pytest.fail("a fresh owner was probed"))
        gather(Row(STRANGER, NOW), observer, clock)


class TestObserved:
    def observed_from(self, checks, observer: OwnerId, clock: FakeClock, seen: dict) -> dict:
        class Talkative:
            def examine(self, *_: object) -> LivenessVerdict:
                return LivenessVerdict(is_alive=False, observed=seen)

        checks(Talkative())
        found = gather(Row(STRANGER, STALE_STAMP), observer, clock)
        assert found is not None
        assert found.observed is not None
        return dict(found.observed)

    def test_is_at_most_sixteen_pairs(self, checks, observer: OwnerId, clock: FakeClock):
        seen = {f"key {number}": number for number in range(40)}
        assert len(self.observed_from(checks, observer, clock, seen)) == 16

    def test_stays_below_two_kilobytes_of_json(self, checks, observer: OwnerId, clock: FakeClock):
        seen = {f"{number} ü\0" + "k" * 500: "漢\0" * 500 for number in range(40)}
        observed = self.observed_from(checks, observer, clock, seen)
        assert len(json.dumps(observed)) <= 2048

    def test_keeps_small_values_and_drops_the_rest(
        self, checks, observer: OwnerId, clock: FakeClock
    ):
        seen = {"a": 1, "b": "text", "c": True, "d": 1.5, "e": None, "f": [1], "g": 2**53}
        observed = self.observed_from(checks, observer, clock, seen)
        assert observed == {"age_ms": STALE_AFTER_MS + 1, "a": 1, "b": "text", "c": True}

    def test_check_cannot_overwrite_the_age(self, checks, observer: OwnerId, clock: FakeClock):
        observed = self.observed_from(checks, observer, clock, {"age_ms": 0})
        assert observed["age_ms"] == STALE_AFTER_MS + 1


def test_nothing_is_gathered_while_the_clock_has_just_jumped(observer: OwnerId):
    class JumpingClock(FakeClock):
        blocked = True

        def takeovers_blocked(self) -> bool:
            return self.blocked

    clock = JumpingClock(NOW)
    assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is None
    clock.blocked = False
    assert gather(Row(STRANGER, STALE_STAMP), observer, clock) is not None


def test_window_follows_the_configured_lease(settings, observer: OwnerId, clock: FakeClock):
    settings.RUNSTORE = {
        "LEASE": {"HEARTBEAT_INTERVAL_MS": 100, "STALE_AFTER_MS": 1_000, "SKEW_ALLOWANCE_MS": 200}
    }
    assert gather(Row(STRANGER, NOW - 1_000), observer, clock) is None
    assert gather(Row(STRANGER, NOW - 1_001), observer, clock) is not None


def test_observer_is_a_real_process(observer: OwnerId):
    assert observer.pid == os.getpid()
