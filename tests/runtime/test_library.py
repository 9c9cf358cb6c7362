"""The private copies of objects, where a loaded file cannot be deleted."""

import os
import tempfile
import time

import pytest

from rasna.runtime import library


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def refuse(path: str) -> None:
    """os.unlink of Windows, of a file that is loaded."""
    raise PermissionError(13, "Access is denied", path)


def test_no_copy_stays_where_loaded_files_can_be_deleted(simulator, folder, monkeypatch):
    monkeypatch.setattr(library, "_cache", {})
    assert library.open_library(simulator()).target == "tiny"
    assert list(folder.iterdir()) == []


def test_an_object_is_loaded_where_its_copy_cannot_be_deleted(simulator, folder, monkeypatch):
    monkeypatch.setattr(library, "_cache", {})
    monkeypatch.setattr(os, "unlink", refuse)
    assert library.open_library(simulator()).target == "tiny"
    assert len(list(folder.glob("rasna-object-*.so"))) == 1


def test_copies_of_ended_processes_are_deleted_and_young_ones_stay(folder):
    names = ("rasna-object-1.dll", "rasna-object-2.dll", "x")
    old, young, other = (folder / name for name in names)
    for path in (old, young, other):
        path.touch()
    hour_ago = time.time() - 3600
    for path in (old, other):
        os.utime(path, (hour_ago, hour_ago))
    library._discard_old_copies()
    assert sorted(folder.iterdir()) == [young, other]
