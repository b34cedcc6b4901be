"""Columns whose meaning must be the same on every database."""

from typing import TYPE_CHECKING, Any, Final

from django.db import models
from django.db.models.expressions import Func

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler
    from django.utils.functional import _StrPromise

    _TextField = models.TextField[Any, Any]
else:
    # The class is generic for type checkers only.
    _TextField = models.TextField


class DurableTextField(_TextField):
    """
    Text compared byte by byte on every database.

    SQLite compares bytes anyway. PostgreSQL follows the database's locale unless
    told otherwise, so the same two ids could sort, and page, in another order there.
    """

    def db_type(self, connection: "BaseDatabaseWrapper") -> str | None:
        """Name the bare type, which also has to serve in casts and as an array."""
        if connection.vendor == "postgresql":
            # In capitals on purpose: a type that starts with a lower-case "text" makes
            # Django build a second, pattern-matching index beside every unique one. Under
            # "C" the ordinary index already serves prefix matches.
            return "TEXT"
        return super().db_type(connection)

    def db_parameters(self, connection: "BaseDatabaseWrapper") -> Any:  # noqa: ANN401 - a private type of the stubs
        """Add the collation of the column; foreign keys take theirs over from here."""
        parameters = super().db_parameters(connection)
        if connection.vendor == "postgresql":
            parameters["collation"] = "C"
        return parameters


class EpochMillisAsDatetime(Func):
    """
    A millisecond column as a timestamp, exact to the millisecond.

    Null before 1970 and past year 9999: no CHECK admits the one and Python cannot read
    the other, and a row that cannot be read would break every query that meets it.

    Used by generated columns, so it must be immutable: days and the rest of the day are
    added apart because an interval multiplied by a large float is rounded.
    """

    arity = 1
    output_field = models.DateTimeField()

    def as_sqlite(
        self, compiler: "SQLCompiler", connection: "BaseDatabaseWrapper", **context: Any
    ) -> tuple[str, Any]:
        """Write the text form that Django stores: no fraction on whole seconds."""
        column, params = compiler.compile(self.source_expressions[0])
        # The percent signs are doubled because Django interpolates the definition once more.
        sql = (
            f"CASE WHEN {column} BETWEEN 0 AND {_LAST_MS_OF_9999} THEN "
            f"strftime('%%Y-%%m-%%d %%H:%%M:%%S', {column} / 1000, 'unixepoch') || "
            f"CASE WHEN {column} %% 1000 = 0 THEN '' ELSE "
            f"'.' || substr('00' || ({column} %% 1000), -3) || '000' END END"
        )
        return sql, [*params] * sql.count(column)

    def as_postgresql(
        self, compiler: "SQLCompiler", connection: "BaseDatabaseWrapper", **context: Any
    ) -> tuple[str, Any]:
        """Add whole days and the rest of the day to the epoch."""
        column, params = compiler.compile(self.source_expressions[0])
        sql = (
            f"CASE WHEN {column} BETWEEN 0 AND {_LAST_MS_OF_9999} THEN "
            f"(DATE '1970-01-01' + ({column} / 86400000)::integer "
            f"+ ({column} %% 86400000) * INTERVAL '1 millisecond') AT TIME ZONE 'UTC' END"
        )
        return sql, [*params] * sql.count(column)


_LAST_MS_OF_9999: Final = 253_402_300_799_999


def generated_datetime(column: str, verbose_name: "_StrPromise") -> models.GeneratedField:
    """Make the datetime twin of a ``*_at_ms`` column, for people and reports."""
    return models.GeneratedField(
        expression=EpochMillisAsDatetime(column),
        output_field=models.DateTimeField(null=True),
        db_persist=True,
        verbose_name=verbose_name,
    )
