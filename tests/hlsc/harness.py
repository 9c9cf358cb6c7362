"""hlsc_harness under its short name, for tests outside of this folder that put it on their path."""

from hlsc_harness import *  # noqa: F403
from hlsc_harness import build, compile_to, lint, run, runtime_objects, verilate

__all__ = ["build", "compile_to", "lint", "run", "runtime_objects", "verilate"]
