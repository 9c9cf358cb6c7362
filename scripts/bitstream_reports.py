"""Reads Vivado's reports and logs: timing, utilisation, and why a stage failed."""

from __future__ import annotations

import re

from bitstream_settings import BitstreamError

# name in the summary → names of the row in reports of Zynq-7000 and of UltraScale+
ROWS = {
    "luts": ("Slice LUTs", "CLB LUTs"),
    "registers": ("Slice Registers", "CLB Registers"),
    "bram36": ("Block RAM Tile",),
    "urams": ("URAM",),
    "dsps": ("DSPs",),
}
REASONS = (
    (r"is an invalid argument\. Please specify an integer value|bad lexical cast",
     "the date overflow of Vivado and Vitis 2021 and older (AMD answer record 76960): install a "
     "newer release"),
    (r"\[Common 17-345\].*|Invalid license|A valid license was not found.*",
     "no licence for the part: install Vivado ML Standard or the licence that the part needs"),
    (r"This design requires more .*?(?=\n|$).*", "the design does not fit the part"),
    (r"No space left on device", "the disk is full"),
    (r"Abnormal program termination.*|std::bad_alloc|Out of memory|Killed",
     "the tool was killed or crashed, most often for want of memory"),
)  # fmt: skip


def parse_timing(text: str, source: str) -> dict[str, float | bool]:
    """Worst slacks in ns and whether all constraints are met, of report_timing_summary."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        names = line.split()
        if names[:2] == ["WNS(ns)", "TNS(ns)"] and number + 2 < len(lines):
            values = lines[number + 2].split()
            break
    else:
        raise BitstreamError(f"{source}: there is no design timing summary in it")
    try:
        setup, hold = float(values[0]), float(values[4])
    except (IndexError, ValueError):
        raise BitstreamError(
            f"{source}: the slacks are {' '.join(values[:5]) or 'missing'}; a design without "
            "numbers there has no clock constraint"
        ) from None
    return {"wns_ns": setup, "whs_ns": hold, "met": setup >= 0 and hold >= 0}


def parse_utilisation(text: str, source: str) -> dict[str, dict[str, float]]:
    """Used, available and percent of LUTs, registers, memories and DSPs."""
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        for name, titles in ROWS.items():
            if cells[0].rstrip("*") in titles and len(cells) >= 5 and name not in found:
                found[name] = {
                    "used": float(cells[1]), "available": float(cells[-2]),
                    "percent": float(cells[-1].lstrip("<")),
                }
    missing = [name for name in ("luts", "registers", "bram36", "dsps") if name not in found]
    if missing:
        raise BitstreamError(f"{source}: there are no rows of {', '.join(missing)} in it")
    return found


def over_used(utilisation: dict[str, dict[str, float]]) -> list[str]:
    """What is used more than there is, with the numbers."""
    return [
        f"{name}: {values['used']:g} of {values['available']:g} ({values['percent']:g} %)"
        for name, values in utilisation.items() if values["used"] > values["available"]
    ]


def reason_of(log: str) -> str:
    """Why a stage failed, out of its log: what is known to go wrong, and the first error lines."""
    known = [reason for pattern, reason in REASONS if re.search(pattern, log)]
    errors = [line.strip() for line in log.splitlines() if re.match(r"\s*(ERROR|error)\b", line)]
    if not errors:
        errors = [line for line in log.splitlines() if line.strip()][-3:]
    return "\n  ".join([*known, *errors[:5]]) or "the log is empty"
