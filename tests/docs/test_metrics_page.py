"""The contract that users read is the contract that the code keeps."""

import inspect
import re
from pathlib import Path

from django_runstore import services
from django_runstore.metrics import COUNTERS
from django_runstore.metrics.contract import RUN_CLAIMS
from django_runstore.prometheus import _GAUGES
from django_runstore.services.door import Entry
from tests.conformance.journal.test_metrics import CALLS as JOURNAL_CALLS
from tests.conformance.test_attempt_spans import ATTRIBUTES as ATTEMPT_ATTRIBUTES
from tests.conformance.test_attempt_spans import SUCCESSFUL as ATTEMPT_SUCCESSFUL
from tests.conformance.test_spans import ATTRIBUTES, SUCCESSFUL

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def rows(first_heading: str) -> list[tuple[str, ...]]:
    """The cells of the table whose first column is headed so."""
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {first_heading} |"):
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
    return found


def code(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def test_the_counters_are_all_there_with_their_labels_and_meanings():
    assert [(code(name), code(labels), meaning) for name, labels, meaning in rows("Counter")] == [
        ((counter.name,), counter.labels, counter.meaning) for counter in COUNTERS
    ]


def test_the_outcomes_of_each_claiming_operation_are_listed():
    listed = {
        (op, outcome)
        for ops, outcomes in rows("`op`")
        for op in code(ops)
        for outcome in code(outcomes)
    }

    assert listed == set(RUN_CLAIMS.answered)


def test_every_other_value_of_a_label_is_named():
    named = set(code(PAGE.read_text(encoding="utf-8")))
    values = {
        value
        for counter in COUNTERS
        for series in counter.answered + counter.broken
        for value in series
    }

    assert values <= named


def test_the_spans_are_those_that_were_recorded():
    listed = {
        (*code(span), code(attributes), code(outcome) == ("success",))
        for span, attributes, outcome in rows("Span")
    }

    assert listed == {
        *(
            (f"RunStore.{operation}", tuple(attributes), operation in SUCCESSFUL)
            for operation, attributes in ATTRIBUTES.items()
        ),
        *(
            (f"AttemptStore.{operation}", tuple(attributes), operation in ATTEMPT_SUCCESSFUL)
            for operation, attributes in ATTEMPT_ATTRIBUTES.items()
        ),
        *(
            (f"Journal.{operation}", tuple(attributes), outcome == "success")
            for operation, (_, attributes, outcome) in JOURNAL_CALLS.items()
        ),
    }


def test_every_operation_of_every_service_has_a_row():
    listed = {code(span)[0] for span, _attributes, _outcome in rows("Span")}
    operations = {
        f"{service.service}.{entry.name}"
        for service in (getattr(services, name) for name in services.__all__)
        for _, method in inspect.getmembers(service, inspect.isfunction)
        if isinstance(entry := getattr(method, "__runstore_operation__", None), Entry)
    }

    assert listed == operations


def test_the_gauges_are_all_there_with_their_meanings():
    assert {code(name)[0]: meaning for name, _label, meaning in rows("Gauge")} == _GAUGES
