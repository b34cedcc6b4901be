"""The services and the reference agree in random interleavings of everything there is."""

import os

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from django_runstore.arbiters import DatabaseArbiter, LocalArbiter
from tests.verification.mutations import MUTATIONS
from tests.verification.whole_machine import WholeMachine

IS_LONG = os.environ.get("RUNSTORE_VERIFICATION") == "long"

COMMON = hypothesis.settings(
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
# The same interleavings each time, so that a commit is not failed by somebody else's find.
SHORT = hypothesis.settings(COMMON, derandomize=True, max_examples=100, stateful_step_count=40)
LONG = hypothesis.settings(COMMON, max_examples=3_000, stateful_step_count=80)
# No shrinking: that a mutation is found is all there is to know.
HUNT = hypothesis.settings(SHORT, max_examples=600, phases=[Phase.generate])

pytestmark = pytest.mark.django_db


def machine(arbiter):
    return type("Machine", (WholeMachine,), {"make_arbiter": arbiter})


@pytest.mark.timeout(7_200 if IS_LONG else 600)
@pytest.mark.parametrize("arbiter", [DatabaseArbiter, LocalArbiter])
def test_the_services_do_what_the_specification_says(arbiter):
    run_state_machine_as_test(machine(arbiter), settings=LONG if IS_LONG else SHORT)


@pytest.mark.sqlite("the mutations are of code that all databases share; once is enough")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_of_the_services_is_found(mutation):
    with MUTATIONS[mutation](), pytest.raises(AssertionError):
        run_state_machine_as_test(machine(DatabaseArbiter), settings=HUNT)
