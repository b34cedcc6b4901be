"""Which files there are, and how they are shared out among runs."""

import sysconfig
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Modules outside packages are shared out in chunks of this many.
CHUNK: Final = 60
_LEFT_OUT: Final = {"site-packages", "dist-packages", "__pycache__"}


@dataclass(frozen=True, slots=True)
class Share:
    """The files of one run, relative to the library's folder."""

    name: str
    files: tuple[str, ...]


def library_root() -> Path:
    """Give the folder of the standard library that this interpreter uses."""
    return Path(sysconfig.get_paths()["stdlib"])


def shares(root: Path) -> tuple[Share, ...]:
    """
    Make one share per top-level package and one per chunk of the remaining modules.

    The largest come first, so that the longest run is not the last to begin.
    """
    packages: dict[str, list[str]] = defaultdict(list)
    modules: list[str] = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if _LEFT_OUT.intersection(parts) or not path.is_file():
            continue
        name = "/".join(parts)
        if len(parts) == 1:
            modules.append(name)
        else:
            packages[parts[0]].append(name)
    chunks = [
        Share(f"modules-{start // CHUNK + 1:02}", tuple(modules[start : start + CHUNK]))
        for start in range(0, len(modules), CHUNK)
    ]
    every = [*(Share(name, tuple(files)) for name, files in packages.items()), *chunks]
    return tuple(sorted(every, key=lambda share: (-len(share.files), share.name)))
