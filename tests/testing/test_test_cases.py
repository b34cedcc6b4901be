"""The tools in Django's own test cases, as ``manage.py test`` runs them."""

from unittest import mock

from django.db import transaction
from django.test import TestCase, TransactionTestCase

from django_runstore.handlers.registry import handler, registry
from django_runstore.testing import (
    FakeClock,
    Runner,
    clock_skew,
    crash_after,
    freeze_owner,
    partition,
    use_clock,
)

START = 1_000_000_000


class Toolkit:
    """One short use of every tool."""

    def setUp(self):
        self.clock = self.enterContext(use_clock(FakeClock(START)))
        known = dict(registry._handlers)
        self.enterContext(mock.patch.object(registry, "_handlers", known))
        self.charge = mock.Mock(return_value="receipt")

        @handler("shop.order")
        def order(run):
            receipt = run.step("charge", self.charge, run.state)
            return run.step("ship", lambda: f"shipped against {receipt}")

        self.order = order
        self.runner = Runner()

    def test_a_run_submitted_in_a_block(self):
        with transaction.atomic():
            handle = self.order.submit(7)
        self.runner.run_until_idle(raise_errors=True)
        self.charge.assert_called_once_with(7)
        assert handle.result() == "shipped against receipt"

    def test_a_crash(self):
        handle = self.order.submit(7)
        with crash_after("charge"):
            self.runner.run_until_idle()
        self.runner.run_until_idle(advance_clock=True)
        self.charge.assert_called_once_with(7)
        assert handle.result() == "shipped against receipt"

    def test_a_freeze(self):
        handle = self.order.submit(7)
        with freeze_owner(after="charge"):
            report = self.runner.run_until_idle()
        assert report.executions[0].status is None
        self.charge.assert_called_once_with(7)
        assert handle.status == "completed"

    def test_a_partition(self):
        handle = self.order.submit(7)
        with partition(after="charge"):
            assert self.runner.run_until_idle().is_cut_off
        self.runner.run_until_idle(advance_clock=True)
        self.charge.assert_called_once_with(7)
        assert handle.status == "completed"

    def test_a_clock_that_is_wrong(self):
        handle = self.order.submit(7, available_at_ms=START + 60_000)
        with clock_skew(60):
            self.runner.run_until_idle()
        assert handle.status == "completed"


class InTransactionTests(Toolkit, TestCase):
    def test_callbacks_are_captured_as_elsewhere(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            transaction.on_commit(self.order.submit)
        assert len(callbacks) == 1
        assert len(self.runner.run_until_idle().executions) == 1


class OutsideTransactionTests(Toolkit, TransactionTestCase):
    pass
