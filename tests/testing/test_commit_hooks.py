"""What waits for a commit runs at the moments when it would have come."""

import pytest
from django.db import connection, transaction

from django_runstore.testing.commit_hooks import CommitHooks


@pytest.fixture
def called(db):
    return []


@pytest.fixture
def hooks(db):
    return CommitHooks()


def test_each_callback_runs_once_in_order_and_those_that_it_registers_after_it(called, hooks):
    def first():
        called.append("first")
        transaction.on_commit(lambda: called.append("third"))

    transaction.on_commit(first)
    transaction.on_commit(lambda: called.append("second"))
    hooks.run()
    hooks.run()

    assert called == ["first", "second", "third"]


def test_what_was_there_before_is_left_to_the_test(called):
    transaction.on_commit(lambda: called.append("the test's"))
    hooks = CommitHooks()
    transaction.on_commit(lambda: called.append("the handler's"))
    hooks.run()
    assert called == ["the handler's"]
    transaction.on_commit(lambda: called.append("dropped"))
    hooks.drop()

    assert len(connection.run_on_commit) == 1


def test_inside_a_block_nothing_is_committed_yet(called, hooks):
    with transaction.atomic():
        transaction.on_commit(lambda: called.append("early"))
        hooks.run()
        hooks.drop()
        assert called == []
    hooks.run()

    assert called == ["early"]


def test_what_was_rolled_back_never_runs(called, hooks):
    with transaction.atomic():
        transaction.on_commit(lambda: called.append("never"))
        transaction.set_rollback(True)
    hooks.run()

    assert called == []


def test_a_callback_that_fails_leaves_the_rest_for_later(called, hooks):
    transaction.on_commit(lambda: called.append(1 / 0))
    transaction.on_commit(lambda: called.append("rest"))
    with pytest.raises(ZeroDivisionError):
        hooks.run()
    hooks.run()

    assert called == ["rest"]


def test_a_robust_one_may_fail_and_its_words_stay_out_of_the_log(called, hooks, caplog):
    def fail():
        raise ValueError("the secret of row 7")

    transaction.on_commit(fail, robust=True)
    transaction.on_commit(lambda: called.append("rest"))
    hooks.run()

    assert called == ["rest"]
    assert caplog.messages == ["an on_commit callback failed: ValueError"]


def test_what_is_dropped_never_runs(called, hooks):
    transaction.on_commit(lambda: called.append("never"))
    hooks.drop()
    hooks.run()

    assert (called, connection.run_on_commit) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_without_a_transaction_around_the_test_django_has_run_them(called, hooks):
    transaction.on_commit(lambda: called.append("at once"))
    hooks.run()

    assert called == ["at once"]
