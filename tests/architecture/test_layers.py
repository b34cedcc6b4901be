"""Six layers; imports point down only, or stay on their layer."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.imports import PACKAGE, Import, imports_of, modules

LAYERS: dict[int, set[str]] = {
    # vocabulary
    0: {
        "attempts",
        "clocks", "conf", "display_text", "durable", "durations", "errors", "events", "evidence",
        "liveness", "metrics", "outcomes", "owners", "process_identity", "redaction",
        "runtime_directory", "server_time", "snapshots", "states", "unset",
    },
    # persistence
    1: {"attempt_rows", "db", "migrations", "models", "querysets", "read_only", "rows"},
    # arbitration
    2: {"arbiters"},
    # services
    3: {"services"},
    # handlers and processes
    4: {"handlers", "supervision"},
    # interface
    5: {"admin", "apps", "checks", "management", "prometheus", "templatetags", "testing"},
}  # fmt: skip

LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names}

# What the root exports lazily, and from where.
LAZY_EXPORTS = {
    "AttemptStore": "services",
    "Journal": "services",
    "RunStore": "services",
    "handler": "handlers",
}

KNOWN = modules()


def layer_of(target: str) -> int:
    """Return the layer of a module, or of a name that the package root exports."""
    parts = target.split(".")
    if len(parts) == 1:
        return 0  # the root's own exports are vocabulary
    return LAYER_OF.get(LAZY_EXPORTS.get(parts[1], parts[1]), 0)


def upward(found: Import) -> bool:
    """Tell whether an import points up. The root's own lazy names are typed there, not imported."""
    if found.importer == PACKAGE and found.for_types_only:
        return False
    return layer_of(found.target) > layer_of(found.importer)


def test_every_module_has_a_layer() -> None:
    unplaced = {name.split(".")[1] for name in KNOWN if name != PACKAGE} - LAYER_OF.keys()

    assert not unplaced, f"give them a layer in {Path(__file__).name}: {sorted(unplaced)}"


@pytest.mark.parametrize("module", sorted(KNOWN))
def test_imports_point_down_only(module: str) -> None:
    wrong = [str(found) for found in imports_of(module, KNOWN[module], KNOWN) if upward(found)]

    assert not wrong


@pytest.mark.parametrize(
    "statement",
    [
        "from django_runstore.services import RunStore",
        "from django_runstore.services.run_store import RunStore",
        "import django_runstore.services.run_store",
        "from django_runstore import RunStore",
        "from django_runstore import services",
        "from . import services",
        "from .services import RunStore",
        "def late():\n    from django_runstore.services import RunStore",
        "import importlib\nimportlib.import_module('django_runstore.services')",
    ],
)
def test_an_upward_import_is_found_wherever_it_stands(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "states.py"
    path.write_text(statement)

    found = list(imports_of(f"{PACKAGE}.states", path, KNOWN))

    assert [one for one in found if upward(one)]


def test_a_downward_import_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "claiming.py"
    path.write_text("from django_runstore.models import Run\nfrom django_runstore import OwnerId\n")

    found = list(imports_of(f"{PACKAGE}.services.claiming", path, KNOWN))

    assert found
    assert not [one for one in found if upward(one)]


def test_the_vocabulary_needs_no_configured_settings() -> None:
    names = sorted(name for name in KNOWN if name == PACKAGE or name.split(".")[1] in LAYERS[0])
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "from django.conf import settings\n"
        "from django.apps import apps\n"
        "assert not settings.configured and not apps.ready\n"
        "print('loaded', 'django_runstore.models' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    child = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"}
    )

    assert child.stdout == "loaded False\n", child.stderr
