"""hlsc: a bounded compiler from HLS C++ to SystemVerilog (see docs/hls.md).

Data goes one way: source -> pragmas -> clang -> irprep -> opt -> llparse -> lower -> ifconvert ->
simplify -> ranges/narrow -> schedule -> emit. It accepts a written subset and refuses everything
else with file and line.
"""

from .driver import Options, Result, compile_source
from .errors import HlsError, Location

__all__ = ["HlsError", "Location", "Options", "Result", "compile_source"]
