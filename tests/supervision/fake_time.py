"""Time and background calls that a test controls: nothing sleeps, nothing runs beside the test."""

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from django_runstore.supervision.background import Completion
from django_runstore.testing import FakeClock

NEVER = math.inf


class Takes(Exception):  # noqa: N818 - raised by a fake call to say how long it takes
    """Raised in a background call: it takes so many milliseconds and then ends like this."""

    def __init__(self, ms: float, value: object = None, error: BaseException | None = None):
        super().__init__(ms)
        self.ms = ms
        self.value = value
        self.error = error


@dataclass
class FakeCalls:
    """Background calls in fake time: a wait moves the clock to what happens next."""

    clock: FakeClock
    started: list[tuple[str, float]] = field(default_factory=list)
    under_way: dict[str, int] = field(default_factory=dict)
    abandoned: list[tuple[str, float]] = field(default_factory=list)
    is_closed: bool = False
    _events: list[tuple[float, int, Completion | Callable[[], object]]] = field(
        default_factory=list
    )
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _is_awake: bool = False

    def at(self, ms: float, action: Callable[[], object]) -> None:
        """Have something happen at a time."""
        heapq.heappush(self._events, (ms, next(self._numbers), action))

    def stop_process(self, at_ms: float, until_ms: float) -> None:
        """Let the whole process stand still for a while, as SIGSTOP does."""
        self.at(at_ms, lambda: self.clock.set(until_ms))

    def start(self, lane: str, call: Callable[[], object]) -> None:
        assert lane not in self.under_way, f"{lane} is busy"
        now_ms = self.clock.now_ms()
        self.started.append((lane, now_ms))
        number = self.under_way[lane] = next(self._numbers)
        try:
            completion, ms = Completion(lane, value=call()), 0.0
        except Takes as takes:
            completion, ms = Completion(lane, takes.value, takes.error), takes.ms
        except BaseException as error:  # noqa: BLE001 - as the threads do
            completion, ms = Completion(lane, error=error), 0.0
        if ms != NEVER:
            heapq.heappush(self._events, (now_ms + ms, number, completion))

    def wait(self, timeout_ms: float) -> Completion | None:
        assert timeout_ms >= 0
        if self._is_awake:
            self._is_awake = False
            return None
        until_ms = self.clock.now_ms() + timeout_ms
        while self._events and self._events[0][0] <= until_ms:
            at_ms, number, event = heapq.heappop(self._events)
            self.clock.set(max(at_ms, self.clock.now_ms()))
            if not isinstance(event, Completion):
                event()
                self._is_awake = False
                return None
            if self.under_way.get(event.lane) == number:
                del self.under_way[event.lane]
                return event
        self.clock.set(until_ms)
        return None

    def wake(self) -> None:
        self._is_awake = True

    def abandon(self, lane: str) -> None:
        if self.under_way.pop(lane, None) is not None:
            self.abandoned.append((lane, self.clock.now_ms()))

    def close(self, patience_ms: float = 0) -> None:
        self.is_closed = True
        for lane in list(self.under_way):
            self.abandon(lane)

    def times_of(self, lane: str) -> list[float]:
        """When a lane was used."""
        return [at_ms for name, at_ms in self.started if name == lane]
