"""Locks of processes, on POSIX and as on Windows."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types

from rasna.simbuild import files

HOLD = (
    "import sys\nfrom pathlib import Path\nfrom rasna.simbuild import locked\n"
    "with locked(Path(sys.argv[1])):\n    print('mine', flush=True)\n    sys.stdin.read()\n"
)


def test_a_lock_is_held_by_one_process_at_a_time(tmp_path):
    lock = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    first = subprocess.Popen(command, **pipes)
    assert first.stdout.readline() == "mine\n"
    probe = f"import fcntl; fcntl.flock(open({str(lock)!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert "BlockingIOError" in done.stderr
    second = subprocess.Popen(command, **pipes)
    first.communicate()
    assert second.stdout.readline() == "mine\n"
    second.communicate()


def test_windows_retries_until_the_lock_is_free(tmp_path, monkeypatch):
    """With a stand-in for msvcrt: this does not run on Windows."""
    calls = []

    def locking(_, mode, num_bytes):
        calls.append((mode, num_bytes))
        if len(calls) == 1:
            raise OSError(36, "Resource deadlock avoided")

    windows = types.SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="unlock")
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(sys, "platform", "win32")
    spec = importlib.util.spec_from_file_location("files_of_windows", files.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.locked(tmp_path / "lock"):
        assert calls == [("lock", 1), ("lock", 1)]
    assert calls[2:] == [("unlock", 1)]
