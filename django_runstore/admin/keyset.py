"""
Pages of a big table by the key of the row at their edge.

Nothing is counted and nothing skipped: a page is read from an index, and the next one begins
behind the last row of it, however many rows there are and whatever was added meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db.models import BooleanField, F, Func, Model, QuerySet, Value

from django_runstore.admin.addresses import url_token, values_of_token
from django_runstore.durable import is_durable_text

ModelT = TypeVar("ModelT", bound=Model)

_LARGEST_INTEGER: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Edge:
    """A row's place: its section, its values in the order of that section, and which side of it."""

    section: int
    values: tuple[int | str, ...]
    is_before: bool = False

    def token(self) -> str:
        """Write the place for a URL, whatever the values consist of."""
        return url_token([self.section, *self.values])


@dataclass(frozen=True, slots=True)
class Section(Generic[ModelT]):
    """
    Rows in one order: descending by ``columns``, which no two rows share and none lacks.

    ``branches`` are disjoint parts of the rows, each to be read by an index of its own, in one
    statement.
    """

    branches: Sequence["QuerySet[ModelT]"]
    columns: tuple[str, ...]

    def read(
        self, values: tuple[int | str, ...] | None, most: int, *, backwards: bool
    ) -> list[ModelT]:
        """Read at most ``most`` rows behind ``values``, or before them and then in reverse."""
        order = [each if backwards else f"-{each}" for each in self.columns]
        parts = []
        for branch in self.branches:
            rows = branch
            if values is not None:
                rows = rows.filter(_compared(self, values, ">" if backwards else "<"))
            parts.append(rows.order_by(*order)[:most])
        found = list(parts[0]) if len(parts) == 1 else _united(parts)
        return sorted(found, key=self.values_of, reverse=not backwards)[:most]

    def values_of(self, row: ModelT) -> tuple[int | str, ...]:
        """Read a row's place."""
        return tuple(getattr(row, each) for each in self.columns)

    def admits(self, values: Sequence[object]) -> bool:
        """Tell whether values from a URL could be those of a row."""
        model = self.branches[0].model
        kinds = [model._meta.get_field(each).get_internal_type() for each in self.columns]
        return len(values) == len(kinds) and all(map(_is_of, values, kinds))


@dataclass(frozen=True, slots=True)
class Page(Generic[ModelT]):
    """Rows, and the places to go on from, where there is more."""

    rows: list[ModelT]
    before: Edge | None = None
    after: Edge | None = None


def read_page(sections: Sequence[Section[ModelT]], edge: Edge | None, size: int) -> Page[ModelT]:
    """
    Read one page of the sections, one after the other.

    Args:
        edge: Where the page begins, or where it ends; None for the first page.
    """
    if edge is None or not edge.is_before:
        found = list(_rows(sections, edge, size + 1))
        return _page(sections, found[:size], has_before=edge is not None, has_after=found[size:])
    found = list(_rows(sections, edge, size + 1))
    if len(found) < size:
        # Nearer to the beginning than one page: that is the first page.
        return read_page(sections, None, size)
    return _page(sections, found[:size][::-1], has_before=found[size:], has_after=True)


def edge_from(token: str, sections: Sequence[Section[ModelT]], *, is_before: bool) -> Edge | None:
    """Read a place out of a URL; None for what nobody here has written."""
    said = values_of_token(token)
    if not said:
        return None
    number, *values = said
    if type(number) is not int or not 0 <= number < len(sections):
        return None
    if not sections[number].admits(values):
        return None
    return Edge(number, tuple(values), is_before)  # type: ignore[arg-type]  # admitted


def _rows(
    sections: Sequence[Section[ModelT]], edge: Edge | None, most: int
) -> Iterator[tuple[int, ModelT]]:
    backwards = edge is not None and edge.is_before
    numbers = range(edge.section if edge else 0, len(sections))
    if edge is not None and edge.is_before:
        numbers = range(edge.section, -1, -1)
    for number in numbers:
        values = edge.values if edge is not None and number == edge.section else None
        rows = sections[number].read(values, most, backwards=backwards)
        yield from ((number, row) for row in rows)
        most -= len(rows)
        if most <= 0:
            return


def _page(
    sections: Sequence[Section[ModelT]],
    found: list[tuple[int, ModelT]],
    *,
    has_before: object,
    has_after: object,
) -> Page[ModelT]:
    def edge_of(number: int, row: ModelT, *, is_before: bool) -> Edge:
        return Edge(number, sections[number].values_of(row), is_before)

    rows = [row for _, row in found]
    if not found:
        return Page(rows)
    return Page(
        rows,
        edge_of(*found[0], is_before=True) if has_before else None,
        edge_of(*found[-1], is_before=False) if has_after else None,
    )


def _united(parts: "list[QuerySet[ModelT]]") -> list[ModelT]:
    """
    Read several ordered and limited queries as one statement.

    ``QuerySet.union()`` refuses such parts where a database has no brackets for them.
    """
    statements, params = [], []
    for number, part in enumerate(parts):
        try:
            sql, given = part.query.get_compiler(part.db).as_sql()
        except EmptyResultSet:
            continue
        statements.append(f"SELECT * FROM ({sql}) AS part{number}")  # noqa: S608 - Django's own
        params += given
    if not statements:
        return []
    return list(parts[0].raw(" UNION ALL ".join(statements), params))


def _is_of(value: object, kind: str) -> bool:
    if kind == "TextField":
        return value == "" or is_durable_text(value)
    return type(value) is int and 0 <= value <= _LARGEST_INTEGER


def _compared(
    section: Section[Any], values: tuple[int | str, ...], operator: Literal["<", ">"]
) -> Func:
    """
    Match rows on one side of a place, as one comparison of tuples.

    An index on the columns answers it from the place on. The same said with AND and OR would
    be a filter over all rows that share the first column.
    """
    model = section.branches[0].model
    fields = [model._meta.get_field(each) for each in section.columns]
    bounds = [Value(value, field) for value, field in zip(values, fields, strict=True)]
    return Func(
        _Tuple(*map(F, section.columns)),
        _Tuple(*bounds),
        template="%(expressions)s",
        arg_joiner=f" {operator} ",
        output_field=BooleanField(),
    )


class _Tuple(Func):
    """Values side by side. No column can hold it, so the type is one that nobody asks for."""

    template = "(%(expressions)s)"
    output_field = BooleanField()
