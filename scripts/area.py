#!/usr/bin/env python3
"""Area of the accelerator on its FPGA, by Yosys: LUTs, registers, DSP48s, block RAMs.

    python scripts/area.py --target pynq-z2 [--quick]

The RTL of hls/ and rtl/ goes through synth_xilinx of Yosys (Python package pyosys). Counts of
DSP48 and block RAM are what any tool would find; those of LUTs and registers are estimates of
another synthesiser than Vivado. A LUT6 of the part holds two functions of few inputs: "LUT" is how
many LUT6 Yosys estimates for its functions (`stat -tech xilinx`) with those used as memory, and
"LUT functions" counts every function by itself. --quick ends before LUTs are mapped: it counts
memories and DSP48s and checks the design, in a third of the time. Both refuse latches and whatever
`check -assert` does.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

from build_rtl import TOP, config_hash_literal, generate, rtl_sources  # noqa: E402
from build_sim import BuildError  # noqa: E402

from rasna.targets import DEFAULT_TARGET, TARGETS  # noqa: E402

# What a part has. xcup of Yosys has the same cells under other names.
PARTS = {
    "XC7Z020": {"family": "xc7", "LUT": 53_200, "FF": 106_400, "DSP48": 220, "BRAM36": 140},
    "XCK26": {"family": "xcup", "LUT": 117_120, "FF": 234_240, "DSP48": 1_248, "BRAM36": 144},
}
DEFAULT_PART = "XC7Z020"  # of targets that are for no board

# Cells of synth_xilinx and what they take: LUTs as logic, as RAM, as shift register; registers.
LUTS = {"INV": 1, **{f"LUT{n}": 1 for n in range(1, 7)}}
RAM_LUTS = {
    "RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2,
    "RAM128X1D": 4, "RAM256X1D": 8,
}
SHIFT_LUTS = {"SRL16E": 1, "SRLC32E": 1, "SRLC16E": 1}
REGISTERS = {name: 1 for name in ("FDRE", "FDSE", "FDCE", "FDPE")}
DSPS = {"DSP48E1": 1, "DSP48E2": 1}
BRAMS = {"RAMB36E1": 1, "RAMB18E1": 0.5, "RAMB36E2": 1, "RAMB18E2": 0.5}
LATCHES = ("$_DLATCH", "$dlatch", "LDCE", "LDPE")
FIRST_MAPPING = "map_dsp"  # the step behind flattening
QUICK_END = "fine"  # the step of synth_xilinx behind the mapping of memories and registers


def yosys_commands(target: str, kernel: Path, statistics: Path, quick: bool) -> list[str]:
    """The script; `statistics` receives the counts of cells as JSON."""
    family = PARTS[part_of(target)]["family"]
    sources = " ".join(str(p) for p in rtl_sources(kernel))
    synth = f"synth_xilinx -family {family} -flatten -noiopad -top {TOP} -run"
    return [
        f"read_slang --allow-use-before-declare -D SYNTHESIS -I {ROOT / 'rtl'} "
        f"-G CONFIG_HASH={config_hash_literal(target)} --top {TOP} {sources}",
        f"{synth} begin:{FIRST_MAPPING}",
        "check -assert",  # here it sees loops; it does not look into cells of the FPGA
        f"{synth} {FIRST_MAPPING}:{QUICK_END if quick else ''}",
        "check -assert",
        f"tee -q -o {statistics} stat -json -top {TOP}",
        f"tee -q -o {statistics.with_suffix('.txt')} stat -tech xilinx -top {TOP}",
    ]


def part_of(target: str) -> str:
    """The FPGA of a target; tiny is measured on that of pynq-z2."""
    part = TARGETS[target].part.upper()
    return next((name for name in PARTS if part.startswith(name)), DEFAULT_PART)


def yosys_is_there() -> bool:
    return importlib.util.find_spec("pyosys") is not None


def run_yosys(commands: list[str], log: Path) -> None:
    """Run a script in a process of its own. Raises BuildError with the end of the log."""
    if not yosys_is_there():
        raise BuildError("Yosys is needed; install it with: pip install pyosys==0.70")
    script = log.with_suffix(".py")
    lines = ["from pyosys import libyosys", "design = libyosys.Design()"]
    lines += [f"libyosys.run_pass({command!r}, design)" for command in commands]
    script.write_text("\n".join(lines) + "\n")
    with open(log, "w") as file:
        done = subprocess.run([sys.executable, str(script)], stdout=file, stderr=file)
    if done.returncode:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise BuildError(f"Yosys failed; the end of {log}:\n{tail}")


def measure(target: str, out: Path, quick: bool = False) -> dict[str, float]:
    """Counts of the target's resources; "LUT" and "FF" are missing in a quick measurement.

    Raises BuildError when a tool is missing, the design does not pass the checks, or it has a
    latch.
    """
    kernel = generate(target, out)
    folder = out / "area"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{target}-quick" if quick else target
    statistics = folder / f"{name}.json"
    run_yosys(yosys_commands(target, kernel, statistics, quick), folder / f"{name}.log")
    modules = json.loads(statistics.read_text())["modules"]
    cells = next(m for n, m in modules.items() if n.lstrip("\\") == TOP)["num_cells_by_type"]
    latches = [c for c in cells if c.startswith(LATCHES)]
    if latches:
        raise BuildError(f"the RTL of {target} infers latches: {', '.join(latches)}")
    return resources(cells, None if quick else logic_cells(statistics.with_suffix(".txt")))


def logic_cells(statistics: Path) -> int:
    """Yosys' estimate of the LUT6 that the logic functions take."""
    found = re.search(r"Estimated number of LCs:\s+(\d+)", statistics.read_text())
    if found is None:
        raise BuildError(f"{statistics} has no estimate of logic cells; pyosys 0.70 writes one")
    return int(found[1])


def resources(cells: dict[str, int], lut6: int | None) -> dict[str, float]:
    """Sums over cells by resource. ``lut6``: logic LUTs; None after a quick measurement."""

    def total(weights: dict[str, float]) -> float:
        return sum(count * weights[name] for name, count in cells.items() if name in weights)

    found = {"DSP48": total(DSPS), "BRAM36": total(BRAMS), "LUT as RAM": total(RAM_LUTS)}
    if lut6 is None:
        return found
    found["LUT as shift register"] = total(SHIFT_LUTS)
    found["LUT functions"] = total(LUTS) + found["LUT as RAM"] + found["LUT as shift register"]
    found["LUT"] = lut6 + found["LUT as RAM"] + found["LUT as shift register"]
    found["FF"] = total(REGISTERS)
    return found


def table(target: str, counts: dict[str, float]) -> str:
    """The counts beside what the part has."""
    part = PARTS[part_of(target)]
    lines = [f"{target} on {part_of(target)}", f"  {'':24}{'needs':>10}{'has':>10}{'':>8}"]
    order = ("LUT", "LUT functions", "LUT as RAM", "LUT as shift register", "FF", "DSP48", "BRAM36")
    for name in (n for n in order if n in counts):
        row = f"  {name:24}{counts[name]:>10,g}"
        if name in part:
            row += f"{part[name]:>10,}{counts[name] / part[name]:>8.0%}"
            row += "  estimate" if name in ("LUT", "FF") else ""
            row += "  DOES NOT FIT" if counts[name] > part[name] else ""
        lines.append(row)
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default=DEFAULT_TARGET, choices=sorted(TARGETS))
    parser.add_argument("--quick", action="store_true", help="no LUTs and registers")
    parser.add_argument("--out", type=Path, default=ROOT / "build", help="directory (build)")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    try:
        counts = measure(options.target, options.out, options.quick)
    except (BuildError, OSError) as error:
        print(f"area.py: {error}", file=sys.stderr)
        return 1
    print(table(options.target, counts))
    print(f"checked: no latches, `check -assert`; {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
