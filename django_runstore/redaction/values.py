"""Redact a value: credentials by the name of their field, and those in its texts."""

from typing import Any, Final

from django_runstore.durable.event_json import MAX_EVENT_DEPTH, MAX_EVENT_VALUES
from django_runstore.durable.integers import exact_integer
from django_runstore.durable.text import exact_text
from django_runstore.redaction.names import counts_tokens, is_credential_name
from django_runstore.redaction.texts import REDACTED, redact_text

CIRCULAR: Final = "[Circular]"


def redact(value: Any) -> Any:  # noqa: ANN401 - any value
    """
    Copy ``value`` without the credentials it holds.

    What a field of a credential's name holds becomes ``[REDACTED]``, whatever it is; only a
    number that can be a count of tokens stays. Texts, and the names of fields too, go through
    ``redact_text``. A container inside itself becomes ``[Circular]``. Everything else but
    dicts, lists, tuples and texts is handed on as it is.

    Raises:
        ValueError: there is more than an event can hold.

    Example:
        >>> redact({"user": "ada", "api_key": "abc", "usage": {"prompt_tokens": 12}})
        {'user': 'ada', 'api_key': '[REDACTED]', 'usage': {'prompt_tokens': 12}}
    """
    return _Redaction().copy(value)


class _Redaction:
    """One walk over one value; one frame per level, and no code of the value's is run."""

    def __init__(self) -> None:
        self._open: set[int] = set()
        self._count = 0

    def copy(self, value: Any) -> Any:  # noqa: ANN401 - any value
        self._count += 1
        if self._count > MAX_EVENT_VALUES:
            raise ValueError("too many values")
        text = exact_text(value)
        if text is not None:
            return redact_text(text)
        is_object = type(value) is dict
        if not is_object and type(value) is not list and type(value) is not tuple:
            return value
        if id(value) in self._open:
            return CIRCULAR
        if len(self._open) > MAX_EVENT_DEPTH:
            return value  # Too deep to be stored, which whoever encodes it will say.
        self._open.add(id(value))
        copied: Any
        if is_object:
            copied = {}
            for key, member in list(value.items()):
                name = exact_text(key)
                if name is None:
                    # No field has such a name; looking it up would run its code.
                    copied = value
                    break
                hidden = is_credential_name(name) and not _is_count(name, member)
                copied[redact_text(name)] = REDACTED if hidden else self.copy(member)
        else:
            copied = []
            # Not a comprehension, which would be a frame more.
            for member in list(value):
                copied.append(self.copy(member))
        self._open.remove(id(value))
        return copied


def _is_count(name: str, value: object) -> bool:
    is_number = exact_integer(value) is not None or issubclass(type(value), float)
    return is_number and counts_tokens(name)
