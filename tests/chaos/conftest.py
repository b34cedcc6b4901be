"""Two supervisors side by side, with workers to kill."""

import pytest

from tests.supervision.processes import SupervisorProcess


@pytest.fixture
def environment(child_environment, tmp_path):
    return child_environment | {
        "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
        "RUNSTORE_TEST_RUNTIME_DIR": str(tmp_path / "runtime"),
    }


@pytest.fixture
def supervisors(environment, tmp_path):
    started = [
        SupervisorProcess(
            environment, tmp_path / f"{name}.log", "--concurrency=2", "--queues=chaos"
        )
        for name in ("a", "b")
    ]
    yield started
    for supervisor in started:
        supervisor.end()
        print(f"--- {supervisor.log_path.name}\n{supervisor.log}")  # noqa: T201
