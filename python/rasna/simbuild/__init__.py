"""Builds the simulators out of sim/ and hls/, and finds the one that a user needs.

``compilers`` finds a C++ compiler, ``platforms`` names what a release is built for, ``build`` makes
an object, ``locate`` is behind :func:`rasna.simulator`. All but ``locate`` need nothing but Python:
`make` asks them for a compiler before anything is installed.
"""

from .build import (
    BODY_SOURCES,
    EMULATE_AVX512,
    FAST_SOURCES,
    ROOT,
    SHARED_SOURCES,
    X86_FLAGS,
    build,
    flags_of,
    make_object,
    object_key,
    run,
)
from .compilers import MIN_CLANG, MIN_GNU, Compiler, find_compiler, host_compiler, zig_compiler
from .files import locked, source_hash
from .platforms import PLATFORMS, Platform, local_platform

__all__ = [
    "BODY_SOURCES",
    "EMULATE_AVX512",
    "FAST_SOURCES",
    "MIN_CLANG",
    "MIN_GNU",
    "PLATFORMS",
    "ROOT",
    "SHARED_SOURCES",
    "X86_FLAGS",
    "Compiler",
    "Platform",
    "build",
    "find_compiler",
    "flags_of",
    "host_compiler",
    "local_platform",
    "locked",
    "make_object",
    "object_key",
    "run",
    "source_hash",
    "zig_compiler",
]
