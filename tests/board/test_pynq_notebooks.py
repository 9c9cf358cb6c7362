"""The notebooks on a board: delivered by pynq's own command, run on the simulated device."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from bitstream_archive import build_wheel

from rasna.compile.backend import build_program
from rasna.graph import Conv, FixedPoint, Padding, Port, QuantGraph, Requant, Tensor

NOTEBOOKS = ROOT / "examples" / "notebooks"
SIZE, CLASSES = 12, 10


def template_program(templates: np.ndarray):
    """Ten classes, each the correlation with a template (12, 12); for pynq-z2."""
    weight = np.round(templates * 100).astype(np.int8)[:, None]
    full = np.ones(CLASSES, np.int32)
    conv = Conv(
        "match", ["x"], "y", weight=weight, padding=Padding(), bias=0 * full,
        requant=Requant(full * 8, full * 3, full * 6, -128, 127),
    )
    tensors = {
        "x": Tensor("x", (1, SIZE, SIZE), FixedPoint(8, 7, True)),
        "y": Tensor("y", (CLASSES, 1, 1), FixedPoint(8, 0, True)),
    }
    graph = QuantGraph(
        tensors, [Port("x", "x", (1, SIZE, SIZE))], [Port("y", "y", (CLASSES,))], [conv]
    )
    return build_program(graph, "pynq-z2")


@pytest.fixture
def folder(overlay_files):
    """What notebook 1 writes, with images that the templates recognise."""
    rng = np.random.default_rng(0)
    templates = np.zeros((CLASSES, SIZE, SIZE))
    templates[:, 2:-2, 2:-2] = rng.random((CLASSES, 8, 8)) < 0.3
    template_program(2 * templates - 1).save(overlay_files / "digits.rasna")
    labels = rng.integers(0, CLASSES, 24)
    np.savez(
        overlay_files / "digits_test.npz", labels=labels,
        images=templates[labels][..., None].astype(np.float32),
    )
    return overlay_files


def run_cells(name: str, folder, monkeypatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.setenv("RASNA_FOLDER", str(folder))
    monkeypatch.setenv("RASNA_RUNTIME", "")
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    names: dict = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    matplotlib.pyplot.close("all")


def test_load_and_run_finds_the_bitstream_and_measures(
    model_board, folder, monkeypatch, capsys
):
    device = model_board("pynq-z2")
    run_cells("2_load_and_run.ipynb", folder, monkeypatch)
    printed = capsys.readouterr().out
    assert f"runtime object: {folder}/rasna.bit" in printed
    assert "100.0% of 24 images" in printed and "without data movement" in printed
    assert device.num_downloads == 1 and not device.buffers


def test_pictures_of_a_folder_are_classified(model_board, folder, monkeypatch, capsys):
    pytest.importorskip("PIL")
    model_board("pynq-z2")
    run_cells("3_classify_images.ipynb", folder, monkeypatch)
    lines = [line for line in capsys.readouterr().out.splitlines() if ".png: " in line]
    assert len(lines) == 12
    assert all(line.split("_label_")[1][0] == line.split(": ")[1] for line in lines)


def test_pynq_get_notebooks_delivers_them(tmp_path):
    wheel = build_wheel(tmp_path, isolated=False)
    installed, delivered = tmp_path / "installed", tmp_path / "delivered"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target",
         str(installed), str(wheel)],
        check=True, capture_output=True, timeout=120,
    )
    # pynq's command demands all dependencies of a wheel; torch is one on 64-bit processors
    metadata = installed / "torch-2.5.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\n")
    done = subprocess.run(
        [sys.executable, "-c",
         "import sys; sys.argv[0] = 'get-notebooks'\n"
         "from pynq._cli.get_notebooks import main; main()",
         "rasna", "--path", str(delivered), "--ignore-overlays"],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
    )
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (delivered / "rasna").glob("*.ipynb"))
    assert names == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
