"""
Keep credentials out of the journal. Spec: run-store 8.1.

A redactor is a function from a value to the value that is stored instead of it.
``redact`` is the default; ``RUNSTORE["REDACTOR"]`` names another one, and ``Journal`` takes
one too. Only what goes into the journal is redacted: run state, attempts and the states of
checkpoints are the program's own data and are stored as they are.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from django_runstore.redaction.names import is_credential_name
from django_runstore.redaction.texts import REDACTED, redact_text
from django_runstore.redaction.values import CIRCULAR, redact

Redactor: TypeAlias = Callable[[Any], Any]

__all__ = ["CIRCULAR", "REDACTED", "Redactor", "is_credential_name", "redact", "redact_text"]
