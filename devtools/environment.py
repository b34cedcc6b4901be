"""A virtual environment with the project in it, made once and remade when its recipe changes."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
STAMP_NAME = "runstore-recipe.json"


@dataclass(frozen=True, slots=True)
class Environment:
    """
    Where the commands run.

    Attributes:
        folder: The virtual environment.
        django: A release series such as ``5.2``; empty for the one that the
            constraints name for this Python.
    """

    folder: Path
    django: str = ""

    @property
    def python(self) -> Path:
        """The interpreter inside."""
        return self.folder / "bin" / "python"

    def ensure(self, *extras: str) -> None:
        """
        Make the environment and install the project with ``extras`` unless that is done.

        Raises:
            subprocess.CalledProcessError: The installer failed and has said why.
        """
        recipe = self.recipe()
        with self._locked():
            installed = self._installed_extras(recipe)
            missing = sorted(set(extras) - installed)
            if missing:
                if not installed:
                    self._create()
                self._install(missing)
                # Written last: an environment that was interrupted is made anew.
                self._stamp.write_text(
                    json.dumps({"recipe": recipe, "extras": sorted(installed | set(extras))})
                )

    def recipe(self) -> str:
        """Return a digest of all that decides what an environment contains."""
        ingredients = [
            str(ROOT),
            sys.version,
            os.path.realpath(sys.executable),
            self.django,
            (ROOT / "pyproject.toml").read_text(),
            CONSTRAINTS.read_text(),
        ]
        return hashlib.sha256("\0".join(ingredients).encode()).hexdigest()

    @property
    def _stamp(self) -> Path:
        return self.folder / STAMP_NAME

    def _installed_extras(self, recipe: str) -> set[str]:
        try:
            stamp = json.loads(self._stamp.read_text())
        except (FileNotFoundError, ValueError):
            return set()
        return set(stamp["extras"]) if stamp["recipe"] == recipe and self.python.exists() else set()

    def _create(self) -> None:
        say(f"making {self.folder.name} with Python {sys.version.split()[0]}")
        shutil.rmtree(self.folder, ignore_errors=True)
        if uv := find_uv():
            command = [uv, "venv", "--quiet", "--python", sys.executable, str(self.folder)]
        else:
            command = [sys.executable, "-m", "venv", str(self.folder)]
        subprocess.run(command, check=True)

    def _install(self, extras: list[str]) -> None:
        say(f"installing django-runstore[{','.join(extras)}]")
        constraints = self.folder / "constraints.txt"
        constraints.write_text(constraints_for(CONSTRAINTS.read_text(), self.django))
        if uv := find_uv():
            command = [uv, "pip", "install", "--quiet", "--python", str(self.python)]
        else:
            command = [str(self.python), "-m", "pip", "install", "--quiet"]
            command += ["--disable-pip-version-check"]
        what = ["--constraint", str(constraints), "--editable", f".[{','.join(extras)}]"]
        subprocess.run([*command, *what], cwd=ROOT, check=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time make the environment; the others wait and then find it."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.folder.with_name(f"{self.folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def chosen_environment(python: str, django: str) -> Environment:
    """
    Name the environment for what was asked for.

    The usual one is ``.venv``; one for another Python or Django has a name of its
    own, so that neither replaces the other. ``RUNSTORE_VENV`` names any folder.
    """
    if folder := os.environ.get("RUNSTORE_VENV"):
        return Environment(Path(folder).absolute(), django)
    parts = [".venv"]
    if python:
        parts.append(f"py{sys.version_info.major}.{sys.version_info.minor}")
    if django:
        parts.append(f"django{django}")
    return Environment(ROOT / "-".join(parts), django)


def constraints_for(constraints: str, django: str) -> str:
    """Return the constraints with Django held to the series ``django``, if one is given."""
    if not django:
        return constraints
    others = [line for line in constraints.splitlines() if not line.lower().startswith("django==")]
    return "\n".join([*others, f"django=={django}.*", ""])


def find_uv() -> str | None:
    """Return uv's path where it runs; a shim in its place may exist and fail."""
    path = shutil.which("uv")
    if path is None:
        return None
    answer = subprocess.run([path, "--version"], capture_output=True, check=False)
    return path if answer.returncode == 0 else None


def say(message: str) -> None:
    """Tell the person who waits what is going on."""
    print(f"dev.py: {message}", flush=True)
