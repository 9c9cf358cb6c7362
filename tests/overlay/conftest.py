"""The flow runs under tclsh; the scripts and the helpers beside these tests are imported by name."""  # noqa: E501

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
