"""The flow runs under a Tcl shell; scripts and helpers beside these tests are imported by name."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "scripts")]
