"""What making a bitstream needs, and what of it is here. Nothing is started but ``-version``.

What only Vivado can tell, the licence above all, is asked by bitstream_probe.py after it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bitstream_settings import ROOT, Board

sys.path.insert(0, str(ROOT / "rtl"))

OLDEST = (2022, 2)  # the oldest release whose C++ and Tcl the sources are written for
DATE_OVERFLOW = (2021, 2)  # this one and older cannot make an IP since 1 January 2022
NEEDED_DISK_BYTES = 15 << 30
NEEDED_MEMORY_BYTES = {"zynq": 8 << 30, "zynqmp": 16 << 30}
VERSION_SECONDS = 60

TESTED = "no release has been tried by this project yet; written for 2022.2 to 2024.2"
INSTEAD = """what can be done without these tools:
  make sim-so TARGET={target}
      the simulator: the same bits, fast
  make sim-rtl-so TARGET={target}
      the RTL and its cycle-accurate simulator, with open tools
{hlsc}  make bitstream BOARD={board}{option} on another computer that has the tools
      then copy build/rasna-{board}.bit, .hwh and .json"""

INSTEAD_OF_VITIS = """  make bitstream BOARD={board} HLS=hlsc
      Vivado alone, without Vitis HLS
"""


@dataclass(frozen=True)
class Finding:
    """One line of the report. ``advice`` is empty when all is well or nothing was checked."""

    what: str
    found: str
    needed: str
    ok: bool
    advice: str = ""
    checked: bool = True

    def __str__(self) -> str:
        state = ("ok     " if self.checked else "note   ") if self.ok else "MISSING"
        text = f"  {state} {self.what}: {self.found}"
        if not self.ok:
            text += f"; needed: {self.needed}\n          {self.advice}"
        return text


@dataclass(frozen=True)
class Tool:
    """A vendor tool on this computer."""

    command: list[str]
    version: tuple[int, int] | None
    text: str


def find_tool(name: str, variable: str) -> Tool | None:
    """A tool on PATH, else in ``$variable/bin``; with its version."""
    path = shutil.which(name)
    if path is None and os.environ.get(variable):
        candidate = Path(os.environ[variable]) / "bin" / name
        path = str(candidate) if os.access(candidate, os.X_OK) else None
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=VERSION_SECONDS
        )
        found = re.search(r"v(20\d\d)\.(\d)", done.stdout + done.stderr)
    except (OSError, subprocess.SubprocessError):
        found = None
    version = (int(found[1]), int(found[2])) if found else None
    return Tool([path], version, f"{path} {found[0] if found else '(no version)'}")


def find_vitis() -> Tool | None:
    """vitis_hls up to 2024, vitis-run after it, as a command that takes a Tcl script."""
    tool = find_tool("vitis_hls", "XILINX_HLS")
    if tool:
        return Tool([*tool.command, "-f"], tool.version, tool.text)
    tool = find_tool("vitis-run", "XILINX_VITIS")
    if tool:
        return Tool([*tool.command, "--mode", "hls", "--tcl"], tool.version, tool.text)
    return None


def check_release(title: str, tool: Tool | None, install: str) -> Finding:
    """Whether a tool is there and new enough."""
    needed = f"{OLDEST[0]}.{OLDEST[1]} or later ({TESTED})"
    if tool is None:
        return Finding(title, "not found", needed, False, install)
    if tool.version is None:
        return Finding(title, tool.text, needed, False, f"it does not say its version; {install}")
    if tool.version <= DATE_OVERFLOW:
        return Finding(
            title, tool.text, needed, False,
            "this release writes the date as YYMMDDhhmm into a 32-bit integer, which overflows "
            "since 1 January 2022: exporting an IP ends with \"bad lexical cast\" or \"is an "
            "invalid argument\" (AMD answer record 76960, y2k22 patch). Install a newer release",
        )
    if tool.version < OLDEST:
        return Finding(title, tool.text, needed, False, install)
    return Finding(title, tool.text, needed, True)


def check_hlsc() -> Finding:
    """What hlsc needs: LLVM of exactly one release."""
    from hlsc import HlsError, llvm

    try:
        return Finding("LLVM 19", llvm.find().origin, "exactly this version", True)
    except HlsError as error:
        advice = str(error).replace("\n", "\n          ")
        return Finding("LLVM 19", "not found", "exactly this version", False, advice)


def memory_bytes() -> int | None:
    """Physical memory of this computer, None when not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def check_machine(board: Board, work: Path) -> list[Finding]:
    """Processor, disk and memory."""
    machine = f"{platform.system()} {platform.machine()}"
    free = shutil.disk_usage(next(p for p in (work, *work.parents) if p.exists())).free
    memory, needed = memory_bytes(), NEEDED_MEMORY_BYTES[board.family]
    gib = 1 << 30
    return [
        Finding("computer", machine, "Linux x86_64", machine == "Linux x86_64",
                "the vendor's tools run nowhere else"),
        Finding("disk", f"{free / gib:.1f} GiB free for {work}", f"{NEEDED_DISK_BYTES / gib:.0f} "
                "GiB", free >= NEEDED_DISK_BYTES, "free some, or give another place with OUT="),
        Finding("memory", "not known" if memory is None else f"{memory / gib:.1f} GiB",
                f"{needed / gib:.0f} GiB for {board.part}", memory is None or memory >= needed,
                "add swap space or take another computer"),
    ]  # fmt: skip


def check(board: Board, hls: str, work: Path) -> tuple[list[Finding], dict[str, Tool | None]]:
    """All findings, and the tools by name."""
    vivado = find_tool("vivado", "XILINX_VIVADO")
    where = "install it from AMD's site (source its settings64.sh), with the device family of "
    findings = [check_release("Vivado", vivado, f"{where}{board.part}")]
    tools: dict[str, Tool | None] = {"vivado": vivado}
    if hls == "vitis":
        tools["vitis"] = find_vitis()
        findings.append(check_release(
            "Vitis HLS", tools["vitis"],
            "install it beside Vivado, or take the open compiler with HLS=hlsc",
        ))
    else:
        findings.append(check_hlsc())
    findings += check_machine(board, work)
    return findings, tools


def unknown_licence(board: Board) -> Finding:
    """Stands for what cannot be asked while something is missing."""
    return Finding(
        f"licence for {board.part}", "looked up by Vivado when nothing else is missing; the vendor "
        f"says that {board.edition} covers it", board.edition, True, checked=False,
    )


def report(findings: list[Finding], board: Board, hls: str) -> str:
    """The report for people; it ends with what to do instead when something is missing."""
    missing = [f for f in findings if not f.ok]
    lines = [f"bitstream for {board.title} ({board.part}), target {board.target}, HLS={hls}"]
    lines += [str(f) for f in findings]
    if missing:
        lines.append(f"{len(missing)} missing: " + ", ".join(f.what for f in missing))
        hlsc = INSTEAD_OF_VITIS.format(board=board.name) if hls == "vitis" else ""
        option = "" if hls == "vitis" else f" HLS={hls}"
        lines.append(INSTEAD.format(
            target=board.target, board=board.name, hlsc=hlsc, option=option
        ))
    return "\n".join(lines)
