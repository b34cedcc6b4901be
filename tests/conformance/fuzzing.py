"""Call an operation with anything, and see that a refusal leaves no trace."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.arbitrary import Recipe
from tests.conformance.hostile import touched


def call_with_anything(
    arguments: st.SearchStrategy[dict[str, Recipe]],
    call: Callable[[Mapping[str, Any]], object],
    stored: Callable[[], object],
    *,
    invalid: type[Exception],
    broken: type[Exception],
    examples: int,
) -> None:
    """
    Call with each of many drawn sets of arguments, and take back what it wrote.

    Args:
        call: Performs the operation; what is not among its arguments is as it should be.
        stored: Everything that a refused call must not change.
        invalid: Raised for what breaks the contract, before the database is asked.
        broken: The base of the typed errors of the service. Anything else fails.
    """
    before = stored()
    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(arguments)
    def check(drawn: dict[str, Recipe]) -> None:
        touched.clear()
        made = {name: recipe() for name, recipe in drawn.items()}
        with transaction.atomic(), connection.execute_wrapper(note):
            statements.clear()
            try:
                call(made)
            except invalid:
                # Cheaper than to compare tables: nothing was even asked of the database.
                assert statements == []
            except broken:
                assert stored() == before
            transaction.set_rollback(True)
        assert touched == []

    check()
    assert stored() == before
