"""The folder of the lock files: private, and recognisable as the same folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_runstore.runtime_directory import is_private, prepare, read_scope, scope_of

ROOT = Path(__file__).parents[2]


def test_folder_is_made_for_one_user_alone(tmp_path: Path):
    previous = os.umask(0)
    try:
        folder = prepare(tmp_path / "a/b")
    finally:
        os.umask(previous)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_private_folder_is_used_again(tmp_path: Path):
    assert prepare(prepare(tmp_path / "run")) == tmp_path / "run"


def test_link_is_refused(tmp_path: Path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError, match="symbolic link"):
        prepare(tmp_path / "link")


def test_file_in_its_place_is_refused(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        prepare(tmp_path / "file")


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701])
def test_folder_open_to_others_is_refused(tmp_path: Path, mode: int):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(PermissionError, match="RUNTIME_DIR"):
        prepare(tmp_path / "open")
    assert not is_private(tmp_path / "open")


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = prepare(tmp_path / "run")
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="another user"):
        prepare(folder)


def test_absent_folder_is_not_private(tmp_path: Path):
    assert not is_private(tmp_path / "absent")


def test_folder_keeps_its_name(tmp_path: Path):
    folder = prepare(tmp_path / "run")
    assert scope_of(folder) == scope_of(folder) == read_scope(folder)


def test_two_folders_have_two_names(tmp_path: Path):
    assert scope_of(prepare(tmp_path / "a")) != scope_of(prepare(tmp_path / "b"))


def test_naming_leaves_nothing_else_behind(tmp_path: Path):
    folder = prepare(tmp_path / "run")
    scope_of(folder)
    assert [path.name for path in folder.iterdir()] == ["scope"]


def test_damaged_name_is_reported_and_not_replaced(tmp_path: Path):
    folder = prepare(tmp_path / "run")
    (folder / "scope").write_text("half a na")
    with pytest.raises(OSError, match="does not hold the name"):
        scope_of(folder)
    assert (folder / "scope").read_text() == "half a na"


def test_processes_that_start_at_once_agree_on_one_name(tmp_path: Path):
    folder = prepare(tmp_path / "run")
    script = (
        "import sys; from pathlib import Path\n"
        "from django_runstore.runtime_directory import scope_of\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(scope_of(Path(sys.argv[1])))\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    processes = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(6)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    names = {process.communicate(timeout=30)[0] for process in processes}
    assert len(names) == 1
