import pytest

from django_runstore.services import RunStore
from tests.supervision.processes import Marks, SupervisorProcess


@pytest.fixture
def supervise(child_environment, tmp_path):
    """Start supervisors over the database under test."""
    environment = child_environment | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "RUNSTORE_TEST_RUNTIME_DIR": str(tmp_path / "runtime"),
    }
    started = []

    def start(*options, **variables):
        log = tmp_path / f"supervisor-{len(started) + 1}.log"
        started.append(SupervisorProcess(environment | variables, log, *options))
        return started[-1]

    yield start
    for supervisor in started:
        supervisor.end()
        # Shown by pytest when the test failed.
        print(f"--- {supervisor.log_path.name}\n{supervisor.log}")  # noqa: T201


@pytest.fixture
def marks(tmp_path):
    return Marks(tmp_path / "marks")


@pytest.fixture
def submit(transactional_db, marks):
    """Store a run whose handler is given the file to leave its marks in."""

    def create(handler, run_id="run", **columns):
        RunStore().create(run_id, marks.state(), handler=handler, **columns)
        return run_id

    return create
