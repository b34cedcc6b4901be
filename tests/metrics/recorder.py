"""An exporter that keeps what it is told."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django_runstore.metrics import COUNTERS


@dataclass
class RecordedSpan:
    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    closed: int = 0
    set_when_closed: list[str] = field(default_factory=list)

    def set(self, name: str, value: Any) -> None:
        if self.closed:
            self.set_when_closed.append(name)
        self.attributes[name] = value


class Recorder:
    """What was told so far: ``counts`` by counter name and label values, and the ``spans``."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.calls = 0
        self.spans: list[RecordedSpan] = []
        self.broken_contract: list[str] = []

    def count(self, name: str, labels: Mapping[str, str], amount: int) -> None:
        self.calls += 1
        (known,) = [counter for counter in COUNTERS if counter.name == name]
        if tuple(sorted(labels)) != tuple(sorted(known.labels)):
            self.broken_contract.append(f"{name}{sorted(labels)}")
        values = tuple(labels[label] for label in known.labels)
        if known.labels and values not in known.answered + known.broken:
            self.broken_contract.append(f"{name}{values}")
        self.counts[name, *values] += amount

    @contextmanager
    def span(self, name: str) -> Iterator[RecordedSpan]:
        span = RecordedSpan(name)
        self.spans.append(span)
        yield span
        span.closed += 1

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        """The series of one counter: label values and number."""
        return {key[1:]: number for key, number in self.counts.items() if key[0] == name}

    def claims(self) -> dict[tuple[str, ...], int]:
        return self.counted("runstore_run_claims")

    def heartbeats(self) -> dict[str, int]:
        return {key[0]: number for key, number in self.counted("runstore_run_heartbeats").items()}

    def transitions(self) -> dict[tuple[str, ...], int]:
        return self.counted("runstore_run_transitions")

    def throughput(self) -> int:
        return self.counts["runstore_run_throughput",]

    def forget(self) -> None:
        self.counts.clear()
        self.calls = 0
        self.spans.clear()
