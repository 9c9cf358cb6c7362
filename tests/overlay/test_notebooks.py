"""The notebooks run from top to bottom, one after another, on the simulator; and are delivered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
RUNTIME = ROOT / "build" / "rasna-pynq-z2.so"


def execute(path: Path, folder: Path, **variables: str) -> str:
    """Run a notebook in ``folder``; all that it printed. Raises on the first cell that fails."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    pytest.importorskip("PIL")
    notebook = nbformat.read(path, as_version=4)
    before = dict(os.environ)
    os.environ.update(
        RASNA_FOLDER=str(folder), RASNA_RUNTIME=str(RUNTIME), RASNA_EPOCHS="4",
        MPLBACKEND="module://matplotlib_inline.backend_inline",
        PYTHONPATH=os.pathsep.join([str(ROOT / "python"), before.get("PYTHONPATH", "")]),
        **variables,
    )
    try:
        client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
        client.execute(cwd=str(folder))
    finally:
        os.environ.clear()
        os.environ.update(before)
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    pictures = sum("image/png" in o.get("data", {}) for o in outputs)
    printed = "".join(o.text for o in outputs if o.output_type == "stream")
    return f"{printed}\npictures: {pictures}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the notebooks find and leave their files; the first one has run."""
    if not RUNTIME.exists():
        pytest.fail("build/rasna-pynq-z2.so is not there; build it with: make sim-so")
    folder = tmp_path_factory.mktemp("notebooks")
    printed = execute(NOTEBOOKS[0], folder)
    assert "sparse and quantised accuracy" in printed
    return folder


def accuracy_of(printed: str) -> float:
    line = next(line for line in printed.splitlines() if "images per second" in line)
    return float(line.split("%")[0])


def test_load_and_run_classifies_and_plots(folder):
    printed = execute(NOTEBOOKS[1], folder)
    assert accuracy_of(printed) > 80  # chance is 10
    assert "pictures: 3" in printed and "one image on the simulator" in printed


def test_pictures_of_a_folder_are_classified(folder):
    printed = execute(NOTEBOOKS[2], folder)
    lines = [line for line in printed.splitlines() if ".png: " in line]
    right = [line for line in lines if line.split("_label_")[1][0] == line.split(": ")[1]]
    assert len(lines) == 12 and len(right) >= 9
    assert "pictures: 1" in printed


CAMERA = """
import numpy as np


class VideoCapture:
    def __init__(self, index):
        assert index == 0

    def read(self):
        data = np.load("digits_test.npz")
        gray = (data["images"][0, 2:-2, 2:-2, 0] * 255).astype(np.uint8)
        frame = np.full((160, 240, 3), 99, np.uint8)  # the middle square is the picture
        frame[:, 40:200] = np.kron(gray, np.ones((20, 20), np.uint8))[..., None]
        return SEEN, frame

    def release(self):
        print("camera released")
"""


@pytest.mark.parametrize("seen", [True, False])
def test_a_picture_of_the_camera_is_classified(seen, folder):
    """cv2 is one of our own here, with a camera that sees the first test image, or nothing."""
    (folder / "cv2.py").write_text(CAMERA.replace("SEEN", str(seen)))
    label = int(np.load(folder / "digits_test.npz")["labels"][0])
    try:
        if seen:
            printed = execute(NOTEBOOKS[2], folder, RASNA_CAMERA="1")
            assert f"camera: {label}\n" in printed and "camera released" in printed
            assert "1 pictures" in printed and "pictures: 1" in printed
        else:
            with pytest.raises(Exception, match="no picture from the camera: is it connected"):
                execute(NOTEBOOKS[2], folder, RASNA_CAMERA="1")
    finally:
        (folder / "cv2.py").unlink()


def test_the_notebooks_are_stored_without_outputs():
    assert [path.name for path in NOTEBOOKS] == [
        "1_train_tune_compile.ipynb", "2_load_and_run.ipynb", "3_classify_images.ipynb"
    ]
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs") and cell.get("execution_count") is None, path.name
