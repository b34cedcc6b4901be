"""The worlds in which the conformance notes are played."""

from typing import Any

import pytest

from tests.conformance.world import ARBITERS, World


@pytest.fixture(params=ARBITERS)
def world(request: pytest.FixtureRequest, db: None) -> World:
    """A world under each arbiter that the specification holds equal."""
    return World(ARBITERS[request.param]())


@pytest.fixture
def database_world(db: None) -> World:
    """A world where the row is the lease, for tests that write rows by hand."""
    return World()


@pytest.fixture
def store(world: World) -> Any:
    return world.store
