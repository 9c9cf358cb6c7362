"""The archive for a board: complete, of one build, the same bytes from the same contents."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import tarfile
import zipfile

import bitstream_archive as archive
import pytest

NOTEBOOKS = sorted(path.name for path in archive.NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture
def out(tmp_path):
    """A directory with the three files of a build, and a wheel."""
    for kind in ("bit", "hwh"):
        (tmp_path / f"rasna-kv260.{kind}").write_bytes(kind.encode())
    (tmp_path / "rasna-kv260.json").write_text(json.dumps({
        "board": "kv260", "bit_sha256": hashlib.sha256(b"bit").hexdigest(),
        "hwh_sha256": hashlib.sha256(b"hwh").hexdigest(),
    }))
    (tmp_path / "rasna-0.1.0-py3-none-any.whl").write_bytes(b"wheel")
    return tmp_path


def pack(out) -> int:
    return archive.main(
        ["kv260", "--out", str(out), "--wheel", str(out / "rasna-0.1.0-py3-none-any.whl")]
    )


def test_everything_a_board_needs_is_in_it(out):
    assert pack(out) == 0
    with tarfile.open(out / "rasna-kv260-overlay.tar.gz") as tar:
        names = tar.getnames()
        text = tar.extractfile("rasna-kv260/INSTALL.txt").read().decode()
        script = tar.extractfile("rasna-kv260/install.sh").read().decode()
        assert tar.getmember("rasna-kv260/install.sh").mode & 0o111
    assert names == sorted(
        f"rasna-kv260/{name}" for name in (
            "INSTALL.txt", "install.sh", "rasna-0.1.0-py3-none-any.whl", "rasna-kv260.bit",
            "rasna-kv260.hwh", "rasna-kv260.json", *(f"notebooks/{n}" for n in NOTEBOOKS),
        )
    )
    assert len(NOTEBOOKS) == 3 and "has been tried\non a board" in text
    assert "rasna-0.1.0-py3-none-any.whl" in script and "--no-deps" in script
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_the_same_contents_give_the_same_bytes(out):
    pack(out)
    first = (out / "rasna-kv260-overlay.tar.gz").read_bytes()
    (out / "rasna-kv260.bit").touch()
    pack(out)
    assert (out / "rasna-kv260-overlay.tar.gz").read_bytes() == first


def test_what_is_missing_is_listed(tmp_path, capsys):
    assert archive.main(["pynq-z2", "--out", str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert all(f"rasna-pynq-z2.{kind}" in message for kind in ("bit", "hwh", "json"))
    assert "make bitstream BOARD=pynq-z2" in message


@pytest.mark.parametrize("kind", ["bit", "hwh"])
def test_files_of_two_builds_are_refused(kind, out, capsys):
    (out / f"rasna-kv260.{kind}").write_bytes(b"another")
    assert pack(out) == 1
    assert f"rasna-kv260.{kind} is not the file that" in capsys.readouterr().err


def test_the_summary_of_another_board_is_refused(out, capsys):
    for kind in ("bit", "hwh", "json"):
        shutil.copyfile(out / f"rasna-kv260.{kind}", out / f"rasna-zcu104.{kind}")
    assert archive.main(["zcu104", "--out", str(out)]) == 1
    assert "is of the board kv260, not of zcu104" in capsys.readouterr().err


def test_the_wheel_carries_the_notebooks_and_their_entry_point(tmp_path):
    try:
        version = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("setuptools is not installed here")
    if int(version.split(".")[0]) < 68:
        pytest.skip(f"setuptools {version} is older than pyproject.toml asks for")
    path = archive.build_wheel(tmp_path, isolated=False)
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        entries = next(name for name in names if name.endswith("entry_points.txt"))
        text = wheel.read(entries).decode()
    assert "[pynq.notebooks]" in text and "rasna = rasna.notebooks" in text
    assert {f"rasna/notebooks/{name}" for name in NOTEBOOKS} <= set(names)
    assert not [name for name in names if name.startswith(("examples", "tests"))]
