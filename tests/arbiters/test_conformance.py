"""Every arbiter of this package through the public suites, alone and under a store."""

import pytest

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
