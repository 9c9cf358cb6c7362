#!/bin/sh
# Says what is missing before anything is built: a Python of 3.10 or later with venv, a C++ compiler.
# usage: preflight.sh [python]
python=${1:-python3}
missing=0
need() { echo "missing: $1" >&2; echo "   $2" >&2; missing=1; }

if ! command -v "$python" >/dev/null 2>&1; then
  need "$python" "install Python 3.10 or later (Debian: apt-get install python3 python3-venv)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  need "Python 3.10 or later" \
    "found $("$python" --version 2>&1); give another one with make PYTHON=/path/to/python"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
  need "the venv module of $python" "Debian: apt-get install python3-venv"
fi
if ! command -v g++ >/dev/null 2>&1 && ! command -v clang++ >/dev/null 2>&1; then
  need "a C++ compiler (g++ 9 or later, or clang++ 10 or later)" "Debian: apt-get install g++"
fi
exit $missing
