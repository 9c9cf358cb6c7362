"""Random programs against g++: see hlsc_fuzz.py.

python tests/hlsc/fuzz.py --count 200 --seed 1
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[1] / "rtl"):
    sys.path.insert(0, str(folder))

from hlsc_fuzz import main

if __name__ == "__main__":
    sys.exit(main())
