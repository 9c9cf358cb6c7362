"""Sums up the runs of the tests that left reports: every skip, its reason, and who allows it.

usage: python scripts/test_report.py FOLDER            prints all; a skip that is not allowed fails
       python scripts/test_report.py FOLDER --skipped  prints the skipped tests, one a line

A run leaves its report in the folder that RASNA_TEST_REPORTS names (tests/conftest.py).
tests/allowed_skips.txt says which skips are allowed and why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = ROOT / "tests" / "allowed_skips.txt"


@dataclass(frozen=True)
class Summary:
    """The runs taken together."""

    num_runs: int
    passed: int
    failed: int
    seconds: float
    skipped: tuple[tuple[str, str], ...]  # (node ID, reason) in the order of the runs

    @property
    def closing_line(self) -> str:
        """As pytest ends a run."""
        counts = ((self.failed, "failed"), (self.passed, "passed"), (len(self.skipped), "skipped"))
        told = [f"{number} {what}" for number, what in counts if number or what == "passed"]
        return f"{', '.join(told)} in {self.seconds:.2f}s"


def read_reports(folder: Path) -> Summary:
    """All reports in ``folder``; SystemExit when there is none, since nothing was run then."""
    paths = sorted(folder.glob("run-*.json"))
    if not paths:
        sys.exit(f"{folder} holds no report of a run; set RASNA_TEST_REPORTS to it for the tests")
    reports = [json.loads(path.read_text()) for path in paths]
    return Summary(
        len(reports),
        sum(report["passed"] for report in reports),
        sum(report["failed"] for report in reports),
        sum(report["seconds"] for report in reports),
        tuple((node, reason) for report in reports for node, reason in report["skipped"]),
    )


def read_allowed(text: str) -> list[tuple[str, str]]:
    """(pattern of the reason, why it is allowed) of each line ``pattern | why``.

    Raises ValueError with the number of a line that lacks either.
    """
    allowed = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, why = (part.strip() for part in line.partition(" | "))
        if not pattern or not why:
            raise ValueError(f"line {number}: 'pattern | why' is needed, found {line!r}")
        allowed.append((pattern, why))
    return allowed


def report_skips(summary: Summary, allowed: list[tuple[str, str]]) -> list[str]:
    """Print each reason once with its tests; returns the reasons that no pattern allows."""
    refused = []
    for reason, number in Counter(reason for _, reason in summary.skipped).items():
        why = next((why for pattern, why in allowed if fnmatchcase(reason, pattern)), None)
        print(f"skipped {number}: {reason}")
        print(f"  allowed: {why}" if why else "  NOT ALLOWED")
        for node in dict.fromkeys(n for n, other in summary.skipped if other == reason):
            print(f"  {node}")
        if not why:
            refused.append(reason)
    return refused


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--skipped", action="store_true", help="print the skipped tests only")
    parser.add_argument("--allowed", type=Path, default=ALLOWED, help="list of allowed skips")
    options = parser.parse_args(arguments)
    summary = read_reports(options.folder)
    if options.skipped:
        print("\n".join(dict.fromkeys(node for node, _ in summary.skipped)))
        return 0
    print(f"{summary.num_runs} runs of the tests")
    refused = report_skips(summary, read_allowed(options.allowed.read_text()))
    if refused:
        print(f"skips that are not allowed: {len(refused)} reasons; install what they name, or "
              f"add a line with the reason to {options.allowed}")
    print(summary.closing_line)
    return int(bool(refused or summary.failed or not summary.passed))


if __name__ == "__main__":
    sys.exit(main())
