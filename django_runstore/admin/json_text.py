"""JSON of runs, attempts and journals as people may read it: cut, hidden or redacted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Case, F, Q, TextField, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Left, Length
from django.utils.functional import Promise
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from django_runstore import conf
from django_runstore.admin.wording import shown_text

LONGEST_SHOWN: Final = 20_000
"""Characters of a JSON text that are shown."""

REDACTED_TO_SHOWN: Final = 50
"""How much longer than what is shown a text may be that a redactor is given as a whole."""

LONGEST_UNFOLDED: Final = 1_500
MOST_LINES_UNFOLDED: Final = 25

HIDDEN: Final[Promise] = gettext_lazy("Hidden by RUNSTORE['ADMIN_SHOWS_STATE'].")

_LONGEST_PRETTY: Final = 4 * LONGEST_SHOWN


@dataclass(frozen=True, slots=True)
class JsonText:
    """
    What to show of a JSON text.

    Attributes:
        text: Safe to show once it is escaped; None when there is nothing to show.
        size: Characters of the whole text; None when there is none.
        note: Why not all of it is shown, if so.
    """

    text: str | None = None
    size: int | None = None
    note: str = ""

    @property
    def is_large(self) -> bool:
        """Whether it is better shown folded."""
        return self.text is not None and (
            len(self.text) > LONGEST_UNFOLDED or self.text.count("\n") > MOST_LINES_UNFOLDED
        )


def read_json(
    column: str, most: int = LONGEST_SHOWN, plain: Q | None = None
) -> dict[str, Combinable]:
    """
    Make the annotations from which ``shown_json`` shows a column; hidden ones are not read.

    Args:
        most: Characters that are read of it, and shown.
        plain: Which rows hold nothing that could be secret; they are always shown.
    """
    head, size = f"_{column}_head", f"_{column}_size"
    beginning = Left(column, most)
    always = () if plain is None else (When(plain, then=beginning),)
    if not conf.current().admin_shows_state:
        if plain is None:
            return {}
        return {size: Case(When(plain, then=Length(column))), head: Case(*always)}
    if conf.current().admin_redactor is None:
        return {size: Length(column), head: beginning}
    # Cutting first could cut a secret out of the words by which it is known.
    is_short = {f"{size}__lte": REDACTED_TO_SHOWN * most}
    return {
        size: Length(column),
        head: Case(*always, When(**is_short, then=F(column)), output_field=TextField()),
    }


def shown_json(
    values: Mapping[str, Any], column: str, most: int = LONGEST_SHOWN, *, is_plain: bool = False
) -> JsonText:
    """
    Show a column that was read by the annotations of ``read_json``.

    Args:
        is_plain: Whether the row is one of the ``plain`` ones.
    """
    if not is_plain and not conf.current().admin_shows_state:
        return JsonText(note=str(HIDDEN))
    head, size = values[f"_{column}_head"], values[f"_{column}_size"]
    if size is None:
        return JsonText()
    redactor = conf.current().admin_redactor
    if redactor is None or is_plain:
        return _cut(head, size)
    return _redacted(redactor, head, size, most)


def _redacted(redactor: str, whole: str | None, size: int, most: int) -> JsonText:
    if whole is None:
        return JsonText(size=size, note=_("Too long to be redacted, and so not shown."))
    try:
        value = import_string(redactor)(json.loads(whole))
        text = json.dumps(value, ensure_ascii=False)
    except Exception as error:  # noqa: BLE001 - whatever breaks in a redactor, nothing gets past it
        said = _("Not shown: it could not be redacted (%(error)s).")
        return JsonText(size=size, note=said % {"error": type(error).__name__})
    return _cut(text[:most], len(text))


def _cut(head: str, size: int) -> JsonText:
    if size <= len(head):
        return JsonText(shown_text(_indented(head)), size)
    note = _("The first %(shown)d of %(all)d characters.") % {"shown": len(head), "all": size}
    return JsonText(shown_text(head), size, note)


def _indented(text: str) -> str:
    try:
        indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    # Indentation multiplies: deep nesting could make a short text endless.
    return indented if len(indented) <= _LONGEST_PRETTY else text
