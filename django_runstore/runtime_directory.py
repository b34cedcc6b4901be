"""
The folder of the lock files: private to one user, and recognisable as the same folder.

A restarted container or a service with a private ``/tmp`` sees an empty folder under the
same path. A lock file that is missing there says nothing, so every folder carries a random
name of its own, and an owner tells in which one its lock file is.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

SCOPE_FILE: Final = "scope"
_SCOPE: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_FILE: Final = 0o600


def prepare(folder: Path) -> Path:
    """
    Create ``folder`` for this user alone, or make sure that it is theirs alone.

    Raises:
        OSError: it cannot be created, is a symbolic link or no folder at all
            (``NotADirectoryError``), belongs to somebody else, or others may write to it
            (``PermissionError``).
    """
    folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    complaint = _privacy_complaint(folder)
    if complaint is not None:
        raise PermissionError(f"{folder} {complaint}; choose another RUNSTORE['RUNTIME_DIR'].")
    return folder


def is_private(folder: Path) -> bool:
    """Tell whether ``folder`` exists and nobody but this user can have put files there."""
    try:
        return _privacy_complaint(folder) is None
    except OSError:
        return False


def scope_of(folder: Path) -> str:
    """
    Return the random name of a prepared folder, giving it one the first time.

    Raises:
        OSError: it cannot be read or written, or holds something else.
    """
    name = read_scope(folder)
    if name is not None:
        return name
    # Written aside and linked into place, so that of several processes that start at once
    # one wins, the others read its name, and none ever reads half of one.
    draft = folder / f"{SCOPE_FILE}.{secrets.token_hex(8)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(8))
        with suppress(FileExistsError):
            os.link(draft, folder / SCOPE_FILE)
    finally:
        draft.unlink()
    name = read_scope(folder)
    if name is None:
        raise OSError(f"{folder / SCOPE_FILE} does not hold the name of a runtime folder.")
    return name


def read_scope(folder: Path) -> str | None:
    """
    Read the random name of a folder; None when it has none.

    Raises:
        OSError: it may not be read.
    """
    try:
        name = (folder / SCOPE_FILE).read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return name if _SCOPE.fullmatch(name) else None


def _privacy_complaint(folder: Path) -> str | None:
    """Say what is wrong with ``folder``; the path itself is looked at, never its target."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        return "is a symbolic link or no folder"
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        return "belongs to another user"
    if os.name == "posix" and stat.S_IMODE(found.st_mode) & ~_PRIVATE_FOLDER:
        return "is open to other users"
    return None
