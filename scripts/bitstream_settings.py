"""Boards and the settings of a bitstream: what the Tcl scripts of overlay/tcl are given.

Addresses and registers come from rasna.isa, sizes from rasna.targets, the rest from one JSON
file per board, overlay/boards/<board>.json.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

from rasna import isa  # noqa: E402
from rasna.targets import TARGETS  # noqa: E402

BOARDS_DIR = ROOT / "overlay" / "boards"
TCL_DIR = ROOT / "overlay" / "tcl"
WRAPPED, WRAPPER = "rasna_accelerator", "rasna_accelerator_ip"
ACCESS = {"r": "read-only", "w": "write-only", "rw": "read-write"}
HLS_TOOLS = ("vitis", "hlsc")
# family → first address behind each port of control, and the ports to memory
CONTROL_PORTS = {
    "zynq": {"M_AXI_GP0": 0x4000_0000, "M_AXI_GP1": 0x8000_0000},
    "zynqmp": {"M_AXI_HPM0_FPD": 0xA000_0000, "M_AXI_HPM1_FPD": 0xB000_0000},
}
CONTROL_WINDOW_BYTES = {"zynq": 1 << 30, "zynqmp": 1 << 28}
MEMORY_PORTS = {
    "zynq": tuple(f"S_AXI_HP{n}" for n in range(4)),
    "zynqmp": tuple(f"S_AXI_HP{n}_FPD" for n in range(4)),
}
PORT_BITS = {"zynq": (32, 64), "zynqmp": (32, 64, 128)}


class BitstreamError(Exception):
    """What went wrong and what to do, in sentences."""


@dataclass(frozen=True)
class Board:
    """One file of overlay/boards. Sizes in bytes, widths in bits, clock in MHz."""

    name: str
    title: str
    target: str
    family: str  # "zynq" or "zynqmp": which file of overlay/tcl makes its processing system
    part: str
    board_part: str
    clock_mhz: int
    control_port: str
    control_base: str
    program_port: str
    data_port: str
    port_bits: int
    memory_base: str
    memory_bytes: int
    ddr_kind: str
    ddr_bits: int
    luts: int
    bram36: int
    dsps: int
    urams: int
    pynq: str
    edition: str


def board_names() -> list[str]:
    """Names of all boards."""
    return sorted(path.stem for path in BOARDS_DIR.glob("*.json"))


def load_board(name: str) -> Board:
    """Raises BitstreamError that lists the boards, or names a file that is not right."""
    path = BOARDS_DIR / f"{name}.json"
    if name not in board_names():
        raise BitstreamError(f"the board {name!r} is unknown; BOARD is one of "
                             + ", ".join(board_names()))
    try:
        board = Board(**json.loads(path.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise BitstreamError(f"{path}: {error}") from error
    if board.name != name or board.target not in TARGETS:
        raise BitstreamError(f"{path}: its name is {board.name}, its target {board.target}")
    wrong = _wrong_ports(board)
    if wrong:
        raise BitstreamError(f"{path}: {wrong}")
    return board


def _wrong_ports(board: Board) -> str:
    """What is wrong with the ports, addresses and widths of a board, "" for nothing."""
    family = board.family
    if family not in CONTROL_PORTS:
        return f"family is {family!r}, it must be one of {', '.join(CONTROL_PORTS)}"
    if board.control_port not in CONTROL_PORTS[family]:
        return (f"control_port is {board.control_port!r}, on {family} it must be one of "
                + ", ".join(CONTROL_PORTS[family]))
    for name in ("program_port", "data_port"):
        if getattr(board, name) not in MEMORY_PORTS[family]:
            return (f"{name} is {getattr(board, name)!r}, on {family} it must be one of "
                    + ", ".join(MEMORY_PORTS[family]))
    if board.program_port == board.data_port:
        return f"program_port and data_port are both {board.data_port}; they must differ"
    if board.port_bits not in PORT_BITS[family]:
        return f"port_bits is {board.port_bits}, on {family} it must be of {PORT_BITS[family]}"
    first = CONTROL_PORTS[family][board.control_port]
    base = int(board.control_base, 16)
    if not first <= base <= first + CONTROL_WINDOW_BYTES[family] - isa.REGISTER_SPAN_BYTES:
        return f"control_base {base:#x} does not lie behind {board.control_port} ({first:#x})"
    return ""


def verilog_wrapper(config_hash: str) -> str:
    """A Verilog-2001 module around rtl/top, whose SystemVerilog an IP's top must not be.

    The ports are read from the source. CONFIG_HASH is the only parameter and becomes a constant.
    """
    source = (ROOT / "rtl" / "top" / f"{WRAPPED}.sv").read_text(encoding="utf-8")
    found = re.search(rf"module {WRAPPED}\b.*?\)\s*\((.*?)\);", source, re.DOTALL)
    if not found:
        raise BitstreamError(f"rtl/top/{WRAPPED}.sv: the list of ports was not found")
    ports = [" ".join(line.split()) for line in found[1].strip().rstrip(",").split(",")]
    names = [port.split()[-1] for port in ports]
    declared = [
        '(* X_INTERFACE_INFO = "xilinx.com:signal:interrupt:1.0 irq INTERRUPT" *)\n'
        '    (* X_INTERFACE_PARAMETER = "SENSITIVITY LEVEL_HIGH" *)\n    ' + port
        if name == "irq" else port
        for port, name in zip(ports, names, strict=True)
    ]
    return (
        "// Generated by scripts/bitstream.py. Do not edit.\n"
        f"module {WRAPPER} (\n    " + ",\n    ".join(declared) + "\n);\n"
        f"  {WRAPPED} #(\n      .CONFIG_HASH(32'h{config_hash[:8]})\n  ) u_accelerator (\n"
        + ",\n".join(f"      .{name}({name})" for name in names) + "\n  );\nendmodule\n"
    )


def rtl_files(kernel: list[Path], wrapper: Path) -> list[Path]:
    """Sources of the IP: library, top, the kernel's files, the wrapper, the header."""
    rtl = ROOT / "rtl"
    library = sorted(p for folder in ("lib", "top") for p in (rtl / folder).glob("*.sv"))
    return [*library, *kernel, wrapper, rtl / "isa.svh"]


def settings(board: Board, hls: str, work: Path, sources: list[Path], jobs: int) -> dict[str, str]:
    """All that the Tcl scripts know, by name."""
    vendor, library, name, version = isa.IP_VLNV.split(":")
    registers = " ".join(
        f"{name} {offset:#04x} {ACCESS[access]}" for name, offset, access, _ in isa.REGISTERS
    )
    return {
        "board": board.name, "family": board.family, "part": board.part,
        "board_part": board.board_part, "edition": board.edition, "hls": hls,
        "clock_mhz": str(board.clock_mhz), "period_ns": f"{1000 / board.clock_mhz:.3f}",
        "control_port": board.control_port, "program_port": board.program_port,
        "data_port": board.data_port,
        "control_base": board.control_base, "control_range": f"{isa.REGISTER_SPAN_BYTES:#x}",
        "port_bits": str(board.port_bits), "memory_base": board.memory_base,
        "memory_bytes": f"{board.memory_bytes:#x}",
        "ip_vendor": vendor, "ip_library": library, "ip_name": name, "ip_version": version,
        "top": WRAPPER, "registers": registers, "jobs": str(jobs),
        "work_dir": str(work), "ip_dir": str(work / "ip"), "project_dir": str(work / "project"),
        "report_dir": str(work), "tcl_dir": str(TCL_DIR),
        "sources": " ".join(f"{{{path}}}" for path in sources),
        "hls_project": str(work / "hls"),
        "hls_source": str(ROOT / "overlay" / "vitis" / "rasna_vitis.cpp"),
        "hls_flags": f"-std=c++17 -fwrapv -I{ROOT / 'hls'} "
                     f"-DRASNA_TARGET_{board.target.upper().replace('-', '_')}",
    }  # fmt: skip


def settings_tcl(values: dict[str, str]) -> str:
    """The text of settings.tcl."""
    lines = [f"set rasna({name}) {{{value}}}" for name, value in values.items()]
    return "# Generated by scripts/bitstream.py. Do not edit.\n" + "\n".join(lines) + "\n"
