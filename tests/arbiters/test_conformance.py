"""Every arbiter of this package through the public suites, alone and under a store."""

import pytest

from django_runstore import arbiters
from django_runstore.arbiters import DatabaseArbiter, LocalArbiter, NullArbiter
from django_runstore.testing.conformance import (
    ArbiterConformance,
    ArbitratedStoreConformance,
    RefusingArbiterConformance,
)


class TestDatabaseArbiter(ArbiterConformance):
    make_arbiter = DatabaseArbiter


class TestLocalArbiter(ArbiterConformance):
    make_arbiter = LocalArbiter


class TestNullArbiter(RefusingArbiterConformance):
    make_arbiter = NullArbiter


@pytest.mark.django_db
class TestStoreOverDatabaseArbiter(ArbitratedStoreConformance):
    make_arbiter = DatabaseArbiter


@pytest.mark.django_db
class TestStoreOverLocalArbiter(ArbitratedStoreConformance):
    make_arbiter = LocalArbiter


def test_no_arbiter_of_the_package_is_left_out():
    shipped = {
        found
        for name, found in vars(arbiters).items()
        if name in arbiters.__all__ and name.endswith("Arbiter") and name != "LeaseArbiter"
    }
    suites = (TestDatabaseArbiter, TestLocalArbiter, TestNullArbiter)
    assert {suite.make_arbiter for suite in suites} == shipped
