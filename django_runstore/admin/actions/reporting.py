"""Answers as messages: one for all runs with the same words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from django.utils.translation import gettext as _

from django_runstore.admin.actions.contract import Answer
from django_runstore.display_text import printable

MOST_NAMED: Final = 20


@dataclass(slots=True)
class Report:
    """Runs with the same answer."""

    words: str
    is_done: bool
    names: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Say what became of which runs, naming the first ``MOST_NAMED``."""
        names = ", ".join(self.names[:MOST_NAMED])
        if len(self.names) > MOST_NAMED:
            more = {"names": names, "number": len(self.names) - MOST_NAMED}
            names = _("%(names)s and %(number)d more") % more
        return f"{self.words}: {names}"


def reports_of(answers: Iterable[Answer]) -> Iterator[Report]:
    """Group answers by their words; what was done comes first."""
    found: dict[str, Report] = {}
    for answer in answers:
        report = found.setdefault(answer.words, Report(answer.words, answer.is_done))
        name = printable(answer.run_id)
        # Beside the run and not in the words: one message for all, however many moments.
        report.names.append(f"{name} ({answer.detail})" if answer.detail else name)
    yield from sorted(found.values(), key=lambda report: not report.is_done)
