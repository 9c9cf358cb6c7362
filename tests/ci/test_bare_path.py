"""scripts/bare_path.py: a PATH of the README's commands alone, whose Python makes environments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import bare_path  # noqa: E402


@pytest.fixture
def folder(tmp_path) -> Path:
    return bare_path.make_folder(tmp_path / "bare bin", ("sh", "env"))


def test_the_folder_holds_the_commands_and_python_alone(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["env", "python3", "sh"]
    bare_path.make_folder(folder, ("sh",))
    assert sorted(path.name for path in folder.iterdir()) == ["python3", "sh"]


def test_its_python_makes_a_virtual_environment_that_runs(folder, tmp_path):
    environment = {**os.environ, "PATH": str(folder)}
    subprocess.run(
        ["python3", "-m", "venv", "--without-pip", str(tmp_path / "venv")], env=environment,
        check=True,
    )
    code = "import json, sys; print(sys.version_info[:2], sys.prefix != sys.base_prefix)"
    done = subprocess.run(
        [tmp_path / "venv" / "bin" / "python", "-c", code], env=environment, check=True,
        capture_output=True, text=True,
    )
    assert done.stdout.strip() == f"{sys.version_info[:2]} True"


def test_commands_that_are_missing_are_named(tmp_path):
    with pytest.raises(bare_path.BarePathError) as caught:
        bare_path.make_folder(tmp_path / "bin", ("sh", "no-such-command"))
    assert str(caught.value) == "not on PATH: no-such-command; install what README.md names"
    assert not (tmp_path / "bin").exists()


def test_a_folder_that_is_not_its_own_is_not_emptied(tmp_path):
    (tmp_path / "thesis.txt").write_text("the only copy")
    with pytest.raises(bare_path.BarePathError) as caught:
        bare_path.make_folder(tmp_path, ("sh",))
    assert str(caught.value) == (
        f"{tmp_path} holds thesis.txt, which is no link that this script made; name another folder"
    )
    assert (tmp_path / "thesis.txt").exists()


def test_every_command_says_why_it_is_there():
    tables = (bare_path.COMPILER, bare_path.MAKE, bare_path.UTILITIES)
    assert all(why.strip() for table in tables for why in table.values())
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names))


def test_make_bare_sees_nothing_else(tmp_path):
    """What make runs finds sh and python3 and, on a machine that has it, no git and no perl."""
    show = tmp_path / "Makefile"
    show.write_text("show:\n\t@command -v python3; command -v git perl clang++ || true\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), "bare", f"GOALS=-f {show} show",
         f"PYTHON={sys.executable}", f"BARE={tmp_path / 'bin'}"],
        env=environment, capture_output=True, text=True, check=True,
    )
    assert done.stdout.splitlines() == [str(tmp_path / "bin" / "python3")]
