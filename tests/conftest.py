"""What a run of the tests leaves for scripts/test_report.py: counts, and each skip's reason.

Nothing is written without RASNA_TEST_REPORTS, which names a folder.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

START = time.monotonic()


def skips(reports) -> list[tuple[str, str]]:
    """(node ID, reason) of every skip; longrepr of one is (file, line, "Skipped: reason")."""
    return [
        (report.nodeid, str(report.longrepr[2]).removeprefix("Skipped: ")) for report in reports
    ]


def pytest_terminal_summary(terminalreporter, config) -> None:
    folder = os.environ.get("RASNA_TEST_REPORTS")
    if not folder or hasattr(config, "workerinput"):
        return  # a worker of xdist tells the process that started it
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    stats = terminalreporter.stats
    report = {
        "passed": len(stats.get("passed", [])),
        "failed": len(stats.get("failed", [])) + len(stats.get("error", [])),
        "seconds": time.monotonic() - START,
        "skipped": skips(stats.get("skipped", [])),
    }
    number = len(list(path.glob("run-*.json"))) + 1
    (path / f"run-{number}.json").write_text(json.dumps(report, indent=1) + "\n")
