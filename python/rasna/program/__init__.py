"""A compiled model: instructions, streams and everything that a runtime needs to know."""

from .container import FORMAT_VERSION, load
from .ports import PortInfo
from .program import Program
from .selfcheck import selfcheck_inputs

__all__ = ["FORMAT_VERSION", "PortInfo", "Program", "load", "selfcheck_inputs"]
