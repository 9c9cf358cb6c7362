"""The golden model: integers and NumPy that say what a program and a graph compute.

``run_program`` is docs/machine.md as code; ``evaluate`` computes a quantised graph layer
by layer. Neither is fast, both are strict, and every other implementation must agree
with them on every bit.
"""

from ..errors import GoldenError
from .layers import dequantize, evaluate, quantize
from .machine import Machine, run_program

__all__ = ["GoldenError", "Machine", "dequantize", "evaluate", "quantize", "run_program"]
