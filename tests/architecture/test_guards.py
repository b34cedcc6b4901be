"""Who may write run rows, and who has to prove with a fence which execution it speaks for."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.imports import PACKAGE, ROOT, modules

KNOWN = modules()

# The manager that writes. Everything else reads, or asks a service.
WRITERS = (
    f"{PACKAGE}.services",
    f"{PACKAGE}.migrations",
    f"{PACKAGE}.testing.factories",
    f"{PACKAGE}.models",  # where the manager is made
    f"{PACKAGE}.db.boundary",  # takes SQLite's write lock with an update of no row
)

# Operations of an owner or claimant. The owner triple cannot tell two executions of a
# run by the same process apart; the fence can.
OWNED_OPERATIONS = {
    "abandon_claim",
    "acknowledge_cancel",
    "activate",
    "begin_attempt",
    "checkpoint",
    "compact",
    "emit_durable",
    "end_attempt",
    "finish",
    "heartbeat",
    "park",
    "patch",
    "put",
    "reconfirm",
    "recover_claim",
    "save_progress",
    "transition_owned",
}
FENCED_OPERATIONS = OWNED_OPERATIONS | {f"a{operation}" for operation in OWNED_OPERATIONS}
FENCING = (f"{PACKAGE}.handlers", f"{PACKAGE}.supervision")

# Objects with operations of the same names that were given their fence when made.
FENCED_WHEN_MADE = {
    "self._run",  # supervision.pulse_conductor.OwnedRun
}

# Objects with operations of the same names that have nothing to do with a run.
NO_STORES = {
    "abandoned",  # supervision.background: a lane
    "lane",
    "self._calls",  # queues
    "self._ended",
    "self._inbox",
    "self._waiting",
}


def belongs_to(module: str, places: tuple[str, ...]) -> bool:
    """Tell whether a module is one of ``places`` or inside one."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def unguarded_uses(source: str) -> list[int]:
    """Return the lines that name the writing manager."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Attribute) and node.attr == "unguarded")
        or (isinstance(node, ast.Constant) and node.value == "unguarded")
    ]


def unfenced_uses(source: str) -> list[int]:
    """Return the lines that use an owned operation, called or handed on, without a fence."""
    tree = ast.parse(source)
    fenced = {
        id(part)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _passes_fence(call)
        for part in (call.func, *call.args)
    }
    return [
        node.lineno
        for node in _attributes(tree)
        if node.attr in FENCED_OPERATIONS
        and id(node) not in fenced
        and ast.unparse(node.value) not in FENCED_WHEN_MADE | NO_STORES
    ]


def _passes_fence(call: ast.Call) -> bool:
    return any(
        keyword.arg == "fence"
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
        for keyword in call.keywords
    )


def _attributes(tree: ast.Module) -> Iterator[ast.Attribute]:
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@pytest.mark.parametrize("module", sorted(name for name in KNOWN if not belongs_to(name, WRITERS)))
def test_run_rows_are_written_by_services_migrations_and_factories_only(module: str) -> None:
    assert unguarded_uses(KNOWN[module].read_text()) == []


def test_the_test_project_writes_no_run_rows() -> None:
    written = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "testproject").glob("**/*.py"))
        if (lines := unguarded_uses(path.read_text()))
    }

    assert written == {}


@pytest.mark.parametrize("module", sorted(name for name in KNOWN if belongs_to(name, FENCING)))
def test_code_that_acts_for_a_handler_passes_its_fence(module: str) -> None:
    assert unfenced_uses(KNOWN[module].read_text()) == []


@pytest.mark.parametrize(
    "source",
    ["Run.unguarded.all()", "manager = model.unguarded", "getattr(Run, 'unguarded').create()"],
)
def test_naming_the_writing_manager_is_found(source: str) -> None:
    assert unguarded_uses(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "store.heartbeat(run_id, owner)",
        "await self.store.aheartbeat(run_id, owner)",
        "store.transition_owned(run_id, owner, to_status, fence=None)",
        "asyncio.to_thread(store.heartbeat, run_id, owner)",
        "operation = store.save_progress",
        "journal.emit_durable(event, owner)",
        "await journal.acheckpoint(run_id, seq, state, owner)",
        "journal.compact(run_id, owner, up_to=seq)",
        "self._attempts.put(attempt, owner)",
        "attempts.finish(record, owner, fence=None)",
        "partial(attempts.patch, key, patch, owner)",
    ],
)
def test_an_owned_operation_without_a_fence_is_found(source: str) -> None:
    tree = source if not source.startswith("await") else f"async def f():\n {source}"

    assert len(unfenced_uses(tree)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "store.heartbeat(run_id, owner, fence=fence)",
        "asyncio.to_thread(store.heartbeat, run_id, owner, fence=fence)",
        "self.heartbeat = interval",
        "store.heartbeat_many(owner, beats)",
        "journal.emit_durable(event, owner, fence=fence)",
        "journal.emit_durable_unfenced(event)",
        "attempts.put(attempt, owner, fence=fence)",
        "self._inbox.put(command)",
    ],
)
def test_what_carries_a_fence_or_needs_none_is_let_be(source: str) -> None:
    assert unfenced_uses(source) == []


def test_the_owned_operations_are_those_of_the_stores_that_take_a_fence() -> None:
    fenced = {
        method.name
        for path in sorted((ROOT / PACKAGE / "services").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
        if "fence" in {argument.arg for argument in method.args.kwonlyargs}
    }

    assert fenced == OWNED_OPERATIONS
