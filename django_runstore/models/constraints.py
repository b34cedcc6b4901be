"""CHECKs shared by the tables, written so that raw SQL cannot leave a half-owned row."""

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from django.db.models import BooleanField, CheckConstraint, Func, Q

from django_runstore.durable import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class HasBytes(Func):
    """
    True when a text column is not empty, without reading a wide text.

    PostgreSQL evaluates every CHECK on every UPDATE. Comparing the text itself would
    fetch and unpack a large state on each heartbeat; its stored length is at hand.
    """

    template = "octet_length(%(expressions)s) > 0"
    arity = 1
    output_field = BooleanField()

    def as_sqlite(
        self, compiler: "SQLCompiler", connection: "BaseDatabaseWrapper", **context: Any
    ) -> tuple[str, Any]:
        """SQLite has ``octet_length`` only since 3.43; it checks only columns that change."""
        return super().as_sql(
            compiler, connection, template="length(CAST(%(expressions)s AS BLOB)) > 0", **context
        )


def integer_range(prefix: str, column: str, *, nullable: bool = False) -> CheckConstraint:
    """Keep a column within the integers that every client can hold exactly."""
    within = Q(**{f"{column}__gte": 0, f"{column}__lte": MAX_SAFE_INTEGER})
    condition = Q(**{f"{column}__isnull": True}) | within if nullable else within
    return CheckConstraint(name=f"{prefix}_{column}_range", condition=condition)


def not_empty(prefix: str, column: str) -> CheckConstraint:
    """Refuse the empty text; a null passes where the column allows one."""
    return CheckConstraint(name=f"{prefix}_{column}_not_empty", condition=~Q(**{column: ""}))


def all_null(columns: Iterable[str]) -> Q:
    """Require that no column has a value."""
    return reduce(and_, (Q(**{f"{column}__isnull": True}) for column in columns))


def all_set(columns: Iterable[str]) -> Q:
    """Require that every column has a value."""
    return reduce(and_, (Q(**{f"{column}__isnull": False}) for column in columns))
