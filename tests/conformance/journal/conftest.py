"""A journal over the arbiter and the clock of the world."""

import pytest

from django_runstore import Journal
from tests.conformance.world import World


@pytest.fixture
def journal(world: World) -> Journal:
    return Journal(clock=world.clock, arbiter=world.arbiter)
