"""Write docs/support.md from the rows in tests/support/cases.py, or check that it is up to date.

    python scripts/generate_support.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from tests.support.page import page

PAGE = ROOT / "docs" / "support.md"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on drift")
    args = parser.parse_args(argv)
    text = page()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    if args.check:
        print("docs/support.md: not up to date, regenerate with make generate")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    print("wrote docs/support.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
