"""One attempt in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from django_runstore.admin.json_text import JsonText


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """
    An attempt as table and chart show it.

    Attributes:
        lasted: In words; what is not finished lasts until now.
        has_error: Whether an error was recorded, whatever the state is called.
    """

    pk: int
    step: str
    attempt: int
    state: str
    started_at_ms: int
    finished_at_ms: int | None
    started: str
    finished: str
    lasted: str
    heartbeat: str
    checkpoint: JsonText
    error: JsonText
    outcome: JsonText
    has_error: bool

    @property
    def documents(self) -> Iterator[tuple[str, str, JsonText]]:
        """Yield what there is of checkpoint, error and outcome: label, place in the page, text."""
        for name, label, document in (
            ("checkpoint", _("Checkpoint"), self.checkpoint),
            ("error", _("Error"), self.error),
            ("outcome", _("Outcome"), self.outcome),
        ):
            if document.text is not None or document.note:
                yield label, f"{name}-{self.pk}", document
