#!/usr/bin/env python3
"""Pack what a board needs into one file: bitstream, .hwh, summary, notebooks, the wheel.

    python scripts/bitstream_archive.py pynq-z2      writes build/rasna-pynq-z2-overlay.tar.gz

The same contents give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bitstream_settings import ROOT, BitstreamError, board_names, load_board
from packages import PackageError, build_wheel

NOTEBOOKS = ROOT / "examples" / "notebooks"
INSTALL = """How to install this archive on the board (docs/boards.md tells it step by step)

1. Copy it to the board:   scp rasna-{board}-overlay.tar.gz xilinx@pynq:
2. On the board, as root:  tar xzf rasna-{board}-overlay.tar.gz && cd rasna-{board}
                           sh install.sh
3. Open Jupyter, http://pynq:9090, folder rasna.

This bitstream was made for {title} with PYNQ {pynq}. Neither it nor this procedure has been tried
on a board by the Rasna project yet.
"""
INSTALL_SCRIPT = """#!/bin/sh
# Installs the wheel for PYNQ's Python and copies bitstream and notebooks to Jupyter's folder.
set -eu
cd "$(dirname "$0")"
[ "$(id -u)" = 0 ] || {{ echo "run it as root: sudo sh install.sh" >&2; exit 1; }}
for file in /etc/profile.d/pynq_venv.sh /etc/profile.d/xrt_setup.sh; do
  [ -f "$file" ] && . "$file"
done
python3 -c "import pynq" || {{ echo "no pynq here: this needs a PYNQ image" >&2; exit 1; }}
# A board has NumPy and no network, and the 64-bit ones need no torch to run Programs.
python3 -m pip install --no-deps --force-reinstall {wheel}
folder="${{PYNQ_JUPYTER_NOTEBOOKS:-/home/xilinx/jupyter_notebooks}}/rasna"
mkdir -p "$folder"
cp rasna-{board}.bit rasna-{board}.hwh rasna-{board}.json notebooks/*.ipynb "$folder"
chown -R xilinx:xilinx "$folder" 2>/dev/null || true
echo "installed in $folder"
"""


def bitstream_files(board: str, out: Path) -> list[Path]:
    """.bit, .hwh and .json of one build. Raises BitstreamError for what is missing or stale."""
    files = [out / f"rasna-{board}.{kind}" for kind in ("bit", "hwh", "json")]
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise BitstreamError(
            f"{', '.join(missing)} missing; make bitstream BOARD={board}, or copy the three files "
            "from a computer that made them"
        )
    summary = json.loads(files[2].read_text(encoding="utf-8"))
    if summary.get("board") != board:
        raise BitstreamError(f"{files[2]} is of the board {summary.get('board')}, not of {board}")
    for path in files[:2]:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != summary.get(f"{path.suffix[1:]}_sha256"):
            raise BitstreamError(f"{path} is not the file that {files[2]} describes; build again")
    return files


def write_archive(path: Path, board: str, files: list[Path], wheel: Path) -> None:
    """A gzipped tar with one folder ``rasna-<board>``; no times or owners in it."""
    facts = load_board(board)
    top = f"rasna-{board}"
    contents = {f"{top}/{file.name}": file.read_bytes() for file in [*files, wheel]}
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        contents[f"{top}/notebooks/{notebook.name}"] = notebook.read_bytes()
    contents[f"{top}/INSTALL.txt"] = INSTALL.format(
        board=board, title=facts.title, pynq=facts.pynq
    ).encode()
    contents[f"{top}/install.sh"] = INSTALL_SCRIPT.format(board=board, wheel=wheel.name).encode()
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name, content in sorted(contents.items()):
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(content), 0o755 if name.endswith(".sh") else 0o644
                tar.addfile(entry, io.BytesIO(content))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("board", help=", ".join(board_names()))
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="directory (build)")
    parser.add_argument("--wheel", type=Path, help="a wheel that was built already")
    options = parser.parse_args(arguments)
    try:
        load_board(options.board)
        files = bitstream_files(options.board, options.out)
        wheel = options.wheel or build_wheel(options.out / "wheel")
        path = options.out / f"rasna-{options.board}-overlay.tar.gz"
        write_archive(path, options.board, files, wheel)
        print(f"{path}: {path.stat().st_size:,} bytes")
    except (BitstreamError, PackageError, OSError, ValueError) as error:
        print(f"bitstream_archive.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
