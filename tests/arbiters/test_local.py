"""The arbiter with a memory of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

from django_runstore import OwnerId
from django_runstore.arbiters import Lease, LocalArbiter
from django_runstore.arbiters.lease import AskActivate, AskClaim, AskRelease, AskRenew, Granted

A = OwnerId("host-a", 101, "owner-a")
STALE_AFTER = 30_000


def ask(arbiter, request, run_id="run", row=Lease()):  # noqa: B008 - frozen
    return arbiter.decide(run_id, row, request, stale_after_ms=STALE_AFTER).answer


def test_it_remembers_what_the_row_does_not_say():
    arbiter = LocalArbiter()
    ask(arbiter, AskClaim(A, 0))
    assert isinstance(ask(arbiter, AskActivate(A, 0, 0)), Granted)
    assert isinstance(ask(arbiter, AskRenew(A, 5)), Granted)


def test_it_does_not_believe_a_row_it_has_not_granted():
    row = Lease(A, 0, 1, None, None, 1)
    assert not isinstance(ask(LocalArbiter(), AskRenew(A, 5), row=row), Granted)


def test_each_arbiter_has_leases_of_its_own():
    assert isinstance(ask(LocalArbiter(), AskClaim(A, 0)), Granted)
    assert isinstance(ask(LocalArbiter(), AskClaim(A, 0)), Granted)


def test_it_forgets_a_lease_that_nobody_holds():
    arbiter = LocalArbiter()
    for number in range(100):
        ask(arbiter, AskClaim(A, 0), f"run-{number}")
        ask(arbiter, AskRelease(A), f"run-{number}")
    assert arbiter._leases == {}


def test_of_many_threads_that_claim_one_wins():
    arbiter, start = LocalArbiter(), threading.Barrier(8)

    def claim(number):
        start.wait(30)
        return ask(arbiter, AskClaim(OwnerId("host", number, "n"), 0))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(claim, range(8)))
    assert sum(isinstance(answer, Granted) for answer in answers) == 1
