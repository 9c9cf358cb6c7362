#!/usr/bin/env python3
"""Make a bitstream: C++ or open RTL, packaged IP, block design, synthesis, implementation.

    python scripts/bitstream.py pynq-z2 [--hls vitis|hlsc] [--from STAGE]

Results: build/rasna-<board>.bit, .hwh and .json. Stages whose inputs have not changed are not
repeated; logs stay in build/bitstream/<board>/. **None of this has been run with Vivado or Vitis
HLS yet**: the scripts are tested against a strict model of the commands that they use.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bitstream_preflight import Finding, Tool, check, report, unknown_licence
from bitstream_probe import probe
from bitstream_reports import over_used, parse_timing, parse_utilisation, reason_of
from bitstream_settings import (
    HLS_TOOLS,
    ROOT,
    TCL_DIR,
    WRAPPER,
    BitstreamError,
    Board,
    board_names,
    load_board,
    rtl_files,
    settings,
    settings_tcl,
    verilog_wrapper,
)

from rasna import isa
from rasna.targets import TARGETS

STAGES = ("kernel", "package", "design", "synthesis", "implementation")
NOT_RUN = "note: this flow has not been run with real vendor tools or boards yet (docs/boards.md)"


def _without_jobs(content: bytes) -> bytes:
    """How many jobs run at a time changes no result."""
    lines = content.split(b"\n")
    return b"\n".join(line for line in lines if not line.startswith(b"set rasna(jobs)"))


@dataclass
class Flow:
    """One board's way to a bitstream."""

    board: Board
    hls: str
    out: Path
    tools: dict[str, Tool | None]
    jobs: int = 2
    echo: Callable[[str], None] = print

    @property
    def work(self) -> Path:
        """Directory of the project, the logs and the reports."""
        return self.out / "bitstream" / self.board.name

    def run(self, first: str = "") -> dict:
        """Run the stages that are not up to date, or all from ``first`` on; the summary."""
        self.work.mkdir(parents=True, exist_ok=True)
        wrapper = verilog_wrapper(TARGETS[self.board.target].config_hash)
        (self.work / f"{WRAPPER}.v").write_text(wrapper)
        settings_path = self.work / "settings.tcl"
        key = ""
        forced = False
        for stage in STAGES:
            if stage == "kernel":
                settings_path.write_text(self._settings([]))
            forced = forced or stage == first
            key = self._key(stage, key, settings_path)
            stamp = self.work / f"{stage}.stamp"
            same = stamp.exists() and stamp.read_text() == key
            if not forced and same and self._is_there(stage):
                self.echo(f"{stage}: up to date")
            else:
                stamp.unlink(missing_ok=True)
                forced = True
                self.echo(f"{stage}: running, log in {self.work / stage}.log")
                getattr(self, f"_{stage}")()
                stamp.write_text(key)
            if stage == "kernel":
                settings_path.write_text(self._settings(self._sources()))
        return self._collect()

    def _is_there(self, stage: str) -> bool:
        """Whether what a stage leaves to the next ones is on the disk."""
        results = {
            "package": [self.work / "ip" / "component.xml"],
            "design": [self.work / "project" / "rasna.xpr"],
            "synthesis": [self.work / "utilization_synthesis.rpt"],
            "implementation": [
                self.work / name for name in ("rasna.bit", "timing.rpt", "utilization.rpt")
            ],
        }
        files = results.get(stage) or self._kernel_files()
        return bool(files) and all(path.exists() for path in files)

    def _settings(self, sources: list[Path]) -> str:
        return settings_tcl(settings(self.board, self.hls, self.work, sources, self.jobs))

    def _key(self, stage: str, before: str, settings_path: Path) -> str:
        """A hash over what a stage depends on, the stages before it included."""
        digest = hashlib.sha256(f"{stage} {before} {self.hls} {isa.ISA_VERSION} ".encode())
        digest.update(" ".join(t.text for t in self.tools.values() if t).encode())
        files = sorted(TCL_DIR.glob("*.tcl")) + [settings_path]
        if stage == "kernel":
            folders = ("hls", "rtl/hlsc", "rtl/include", "overlay/vitis")
            files += [p for f in folders for p in sorted((ROOT / f).iterdir()) if p.is_file()]
            files.append(ROOT / "scripts" / "build_rtl.py")
        if stage == "package":
            files += self._sources()
        for path in files:
            digest.update(path.name.encode() + _without_jobs(path.read_bytes()))
        return digest.hexdigest()

    # Stages ------------------------------------------------------------------------------

    def _kernel(self) -> None:
        if self.hls == "hlsc":
            command = [sys.executable, str(ROOT / "scripts" / "build_rtl.py"), "--verilog",
                       "--target", self.board.target, "--out", str(self.out)]
        else:
            # vitis-run passes no arguments on to a script, so a script of its own names them
            script = self.work / "run_kernel.tcl"
            script.write_text(
                f"set argv [list {{{self.work / 'settings.tcl'}}}]\n"
                f"source {{{TCL_DIR / 'kernel.tcl'}}}\n"
            )
            command = [*self._tool("vitis"), str(script)]
        self._call("kernel", command)
        if not [p for p in self._kernel_files() if p.exists()]:
            raise BitstreamError(self._failed("kernel", "no RTL was written"))

    def _kernel_files(self) -> list[Path]:
        if self.hls == "hlsc":
            return [self.out / "rtl" / self.board.target / "rasna_top.sv"]
        verilog = self.work / "hls" / "solution" / "syn" / "verilog"
        made = sorted(p for p in verilog.glob("*") if p.suffix in (".v", ".sv", ".dat"))
        return [*made, ROOT / "overlay" / "vitis" / "rasna_top_kernel.sv"] if made else []

    def _sources(self) -> list[Path]:
        return rtl_files(self._kernel_files(), self.work / f"{WRAPPER}.v")

    def _package(self) -> None:
        shutil.rmtree(self.work / "ip", ignore_errors=True)
        self._vivado("package", self.work / "ip" / "component.xml")

    def _design(self) -> None:
        shutil.rmtree(self.work / "project", ignore_errors=True)
        self._vivado("design", self.work / "project" / "rasna.xpr")

    def _synthesis(self) -> None:
        path = self.work / "utilization_synthesis.rpt"
        self._vivado("synthesis", path)
        over = over_used(parse_utilisation(path.read_text(), str(path)))
        if over:
            raise BitstreamError(self._failed(
                "synthesis", f"{self.board.part} is too small: " + "; ".join(over)
            ))

    def _implementation(self) -> None:
        for name in ("utilization.rpt", "timing.rpt", "rasna.bit"):
            (self.work / name).unlink(missing_ok=True)
        self._vivado("implementation", self.work / "rasna.bit")
        timing = parse_timing((self.work / "timing.rpt").read_text(), "timing.rpt")
        if not timing["met"]:
            raise BitstreamError(self._failed("implementation", self._slack(timing)))

    def _slack(self, timing: dict) -> str:
        return (
            f"timing is not met at {self.board.clock_mhz} MHz: worst setup slack "
            f"{timing['wns_ns']} ns, worst hold slack {timing['whs_ns']} ns; lower clock_mhz in "
            f"overlay/boards/{self.board.name}.json"
        )

    def _vivado(self, stage: str, result: Path) -> None:
        result.unlink(missing_ok=True)
        self._call(stage, [
            *self._tool("vivado"), "-mode", "batch", "-nojournal", "-nolog", "-source",
            str(TCL_DIR / f"{stage}.tcl"), "-tclargs", str(self.work / "settings.tcl"),
        ])
        if not result.exists():
            raise BitstreamError(self._failed(stage, f"{result} was not written"))

    def _tool(self, name: str) -> list[str]:
        tool = self.tools.get(name)
        if tool is None:
            raise BitstreamError(f"{name} is not there; run the preflight")
        return tool.command

    def _call(self, stage: str, command: list[str]) -> None:
        log = self.work / f"{stage}.log"
        with open(log, "w") as file:
            done = subprocess.run(command, cwd=self.work, stdout=file, stderr=subprocess.STDOUT)
        if done.returncode:
            why = reason_of(log.read_text(errors="replace") + self._log_of_run(stage))
            timing = self.work / "timing.rpt"
            if stage == "implementation" and timing.exists():
                slacks = parse_timing(timing.read_text(), "timing.rpt")
                why = self._slack(slacks) if not slacks["met"] else why
            raise BitstreamError(self._failed(stage, why))

    def _log_of_run(self, stage: str) -> str:
        """Vivado runs synthesis and implementation in processes with logs of their own."""
        run = {"synthesis": "synth_1", "implementation": "impl_1"}.get(stage, "")
        path = self.work / "project" / "rasna.runs" / run / "runme.log"
        return "\n" + path.read_text(errors="replace") if run and path.exists() else ""

    def _failed(self, stage: str, why: str) -> str:
        return f"{stage} failed: {why}\n  the whole log: {self.work / stage}.log"

    # Results -----------------------------------------------------------------------------

    def _collect(self) -> dict:
        """Copy .bit and .hwh to their names and write the summary beside them."""
        stem = self.out / f"rasna-{self.board.name}"
        hwh = sorted((self.work / "project").rglob("rasna.hwh"))
        if not hwh:
            raise BitstreamError(f"{self.work / 'project'}: there is no rasna.hwh; repeat with "
                                 "--from design")
        shutil.copyfile(self.work / "rasna.bit", f"{stem}.bit")
        shutil.copyfile(hwh[0], f"{stem}.hwh")
        target = TARGETS[self.board.target]
        summary = {
            "board": self.board.name, "part": self.board.part, "target": target.name,
            "config_hash": target.config_hash, "isa_version": isa.ISA_VERSION, "hls": self.hls,
            "clock_mhz": self.board.clock_mhz,
            "tools": {name: t.text.split()[-1] for name, t in self.tools.items() if t},
            "timing": parse_timing((self.work / "timing.rpt").read_text(), "timing.rpt"),
            "utilisation": parse_utilisation(
                (self.work / "utilization.rpt").read_text(), "utilization.rpt"
            ),
            **{f"{kind}_sha256": hashlib.sha256(Path(f"{stem}.{kind}").read_bytes()).hexdigest()
               for kind in ("bit", "hwh")},
        }  # fmt: skip
        Path(f"{stem}.json").write_text(json.dumps(summary, indent=2) + "\n")
        return summary


def preflight(board: Board, hls: str, out: Path) -> tuple[list[Finding], dict[str, Tool | None]]:
    """All findings and the tools; Vivado is asked only when nothing else is missing."""
    findings, tools = check(board, hls, out)
    vivado = tools["vivado"]
    if vivado is None or not all(f.ok for f in findings):
        return [*findings, unknown_licence(board)], tools
    print("asking Vivado for the part, the board files and the licence", flush=True)
    return findings + probe(board, vivado, out / "bitstream" / board.name), tools


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("board", help=", ".join(board_names()))
    parser.add_argument("--hls", default="vitis", choices=HLS_TOOLS,
                        help="vitis: Vitis HLS; hlsc: the open compiler, Vivado alone is enough")
    parser.add_argument("--from", dest="first", default="", choices=("", *STAGES),
                        help="repeat from this stage on, also when nothing has changed")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="directory (build)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", action="store_true", help="the preflight only")
    options = parser.parse_args(arguments)
    try:
        board = load_board(options.board)
        out = options.out.resolve()
        findings, tools = preflight(board, options.hls, out)
        failed = not all(f.ok for f in findings)
        print(report(findings, board, options.hls), file=sys.stderr if failed else sys.stdout)
        print(NOT_RUN, file=sys.stderr if failed else sys.stdout, flush=True)
        if failed or options.check:
            return int(failed)
        summary = Flow(board, options.hls, out, tools, options.jobs).run(options.first)
        print(json.dumps(summary, indent=2))
    except (BitstreamError, OSError) as error:
        print(f"bitstream.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
