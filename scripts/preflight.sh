#!/bin/sh
# Says all that is missing before anything is built. Python 3.10 with venv and a C++ compiler always; what a target needs
# beyond them is named by it.
# usage: preflight.sh [python] [hlsc | verilator]...
#   hlsc       LLVM 19: there, or a computer that `make llvm` can install it on
#   verilator  perl and make, for the Python package verilator
python=${1:-python3}
[ $# -gt 0 ] && shift
case $0 in */*) scripts=${0%/*} ;; *) scripts=. ;; esac
missing=0
need() { echo "missing: $1" >&2; echo "   $2" >&2; missing=1; }
there() { command -v "$1" >/dev/null 2>&1; }

if ! there "$python"; then
  need "$python" "install Python 3.10 or later (Debian: apt-get install python3 python3-venv)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  need "Python 3.10 or later" \
    "found $("$python" --version 2>&1); give another one with make PYTHON=/path/to/python"
else
  if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    need "the venv module of $python" "Debian: apt-get install python3-venv"
  fi
  # build_sim.py knows which compilers are new enough; it needs nothing but Python.
  if ! compiler=$("$python" - "$scripts" 2>&1 <<'EOF'
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from build_sim import BuildError, find_compiler

try:
    find_compiler(os.environ.get("CXX"))
except BuildError as error:
    sys.exit(str(error))
EOF
  ); then
    need "a C++ compiler" "$compiler"
  fi
fi

for what in "$@"; do
  case $what in
    hlsc)
      if there "$python" && ! found=$("$python" - "$scripts/../rtl" 2>&1 <<'EOF'
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from hlsc import llvm

sys.exit(llvm.obstacle())
EOF
      ); then
        need "LLVM 19" "$found"
      fi ;;
    verilator)
      there perl || need "perl" "Debian: apt-get install perl"
      there make || need "make" "Debian: apt-get install make" ;;
    *) need "a check named $what" "preflight.sh knows hlsc and verilator" ;;
  esac
done
exit $missing
