"""docs/boards.md: its table is that of the board files, its messages are those of the code."""

from __future__ import annotations

import re

from bitstream_settings import board_names, load_board
from overlay_flow import ROOT

PAGE = (ROOT / "docs" / "boards.md").read_text(encoding="utf-8")


def test_the_table_of_boards_is_that_of_the_files():
    rows = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 13 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = cells[1:]
    assert sorted(rows) == board_names()
    for name, cells in rows.items():
        board = load_board(name)
        assert cells[:7] == [
            board.part, f"`{board.target}`", f"{board.clock_mhz} MHz", f"{board.luts:,}",
            f"{board.bram36:,}", f"{board.urams:,}", f"{board.dsps:,}",
        ]
        assert f"{board.ddr_kind}, {board.ddr_bits} bits" in cells[7] and cells[8] == board.pynq
        assert cells[9] == "no" and cells[11] == "no"


def test_every_message_of_the_tables_exists_in_the_code():
    sources = [
        *(ROOT / "python" / "rasna" / "runtime").glob("b*.py"), ROOT / "python/rasna/isa.py",
        *(ROOT / "scripts").glob("bitstream*.py"), *(ROOT / "overlay" / "tcl").glob("*.tcl"),
    ]
    code = "".join(path.read_text(encoding="utf-8") for path in sources)
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # texts that go on in the next line
    code = re.sub(r"\{[^{}\n]*\}|\$rasna\(\w+\)", "…", code)
    section = PAGE.split("## Messages")[1].split("## Tests")[0]
    firsts = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    messages = [m for cell in firsts for m in re.findall(r"`([^`]+)`", cell)]
    assert len(messages) > 20
    missing = [m for m in messages if not all(p.strip() in code for p in m.split("…"))]
    assert not missing
