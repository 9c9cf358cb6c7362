"""scripts/release_page.py: the lines that a user of a release copies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from release_page import INSTALL, LINES, page_text


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_shows_the_lines_of_the_page(page):
    """tests/scripts/test_release.py runs them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert f"```\n{INSTALL}```" in text and f"```python\n{LINES}```" in text


def test_every_simulator_has_a_row_that_says_how_it_was_run():
    simulators = [("a.so", "Linux", "run"), ("b.dll", "Windows", "built, not run")]
    page = page_text("1.2", "w.whl", "s.tar.gz", "s.json", simulators)
    assert page.startswith("# Rasna 1.2\n") and INSTALL in page and LINES in page
    assert page.endswith("| `a.so` | Linux | run |\n| `b.dll` | Windows | built, not run |\n")
