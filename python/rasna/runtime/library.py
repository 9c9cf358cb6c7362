"""Loads a shared library through ctypes and checks that it is a Rasna runtime object.

The declarations mirror ``sim/rasna_sim.h``; a test compares the two.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import os
import tempfile
import threading
import time
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

from ..errors import RuntimeObjectError

ABI_VERSION = 1
_TEXT_BYTES = 2048
_MAX_LIBRARY_BYTES = 1 << 30
_COPY_PREFIX = "rasna-object-"
_YOUNG_SECONDS = 600


class _Identity(ctypes.Structure):
    _fields_ = [
        ("abi_version", c_uint32),
        ("isa_version", c_uint32),
        ("target", c_char_p),
        ("config_hash", c_char_p),
        ("kind", c_char_p),
        ("build", c_char_p),
    ]


# name: (result, arguments)
_FUNCTIONS = {
    "rasna_identify": (POINTER(_Identity), []),
    "rasna_create": (c_int32, [POINTER(c_void_p), c_char_p, c_uint64]),
    "rasna_destroy": (None, [c_void_p]),
    "rasna_load": (c_int32, [c_void_p, c_void_p, c_uint64, c_uint64, c_uint64, c_uint64]),
    "rasna_run": (c_int32, [c_void_p, c_void_p, c_void_p, c_uint64]),
    "rasna_counters": (c_int32, [c_void_p, c_void_p, c_uint64, POINTER(c_uint64)]),
    "rasna_set_option": (c_int32, [c_void_p, c_char_p, c_char_p]),
    "rasna_get_option": (c_int32, [c_void_p, c_char_p, c_char_p, c_uint64]),
    "rasna_read_map": (c_int32, [c_void_p, c_uint32, c_uint32, c_uint32, c_void_p]),
    "rasna_error_code": (c_int32, [c_void_p]),
    "rasna_error_text": (c_char_p, [c_void_p]),
    "rasna_error_instruction": (c_int64, [c_void_p]),
}


@dataclass(frozen=True)
class Library:
    """A loaded object: its ctypes handle and what it says about itself."""

    path: str
    handle: ctypes.CDLL
    isa_version: int
    target: str
    config_hash: str
    kind: str
    build: str


_cache: dict[str, Library] = {}
_cache_lock = threading.Lock()


def open_library(path: str) -> Library:
    """Load the object at ``path`` as it is now.

    A private copy is loaded, so that an object that is rebuilt at the same path is a new one.
    Equal contents are loaded once per process.

    Raises RuntimeObjectError when the file is missing or is not a Rasna runtime object.
    """
    content = _read(path)
    digest = hashlib.sha256(content).hexdigest()
    with _cache_lock:
        if digest not in _cache:
            _cache[digest] = _identify(path, _load_copy(path, content))
        known = _cache[digest]
    return Library(**{**known.__dict__, "path": path})


def _read(path: str) -> bytes:
    if not os.path.exists(path):
        raise RuntimeObjectError(
            f"{path}: there is no such file; make sim-so builds the simulator of a target"
        )
    if not os.path.isfile(path):
        raise RuntimeObjectError(f"{path}: is not a file; a runtime object is a shared library")
    try:
        if os.path.getsize(path) > _MAX_LIBRARY_BYTES:
            raise RuntimeObjectError(f"{path}: is too large to be a runtime object")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise RuntimeObjectError(f"{path}: cannot be read: {error.strerror}") from error


def _load_copy(path: str, content: bytes) -> ctypes.CDLL:
    """The copy is deleted at once; the loaded library keeps its contents."""
    if os.name == "nt":
        _discard_old_copies()
    handle, copy = tempfile.mkstemp(prefix=_COPY_PREFIX, suffix=os.path.splitext(path)[1])
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(copy, 0o700)
        return ctypes.CDLL(copy)
    except OSError as error:
        reason = str(error).replace(copy, os.path.basename(path))
        raise RuntimeObjectError(
            f"{path}: cannot be loaded as a shared library on this machine: {reason}"
        ) from error
    finally:
        _discard(copy)


def _discard(copy: str) -> None:
    """Delete a copy. Windows refuses while it is loaded: a later process does it."""
    with contextlib.suppress(PermissionError):
        os.unlink(copy)


def _discard_old_copies() -> None:
    """Delete the copies of processes that ended. Young ones may be about to be loaded."""
    for copy in glob.glob(os.path.join(glob.escape(tempfile.gettempdir()), f"{_COPY_PREFIX}*")):
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            if time.time() - os.path.getmtime(copy) > _YOUNG_SECONDS:
                _discard(copy)


def _identify(path: str, handle: ctypes.CDLL) -> Library:
    if not hasattr(handle, "rasna_identify"):
        raise RuntimeObjectError(
            f"{path}: is a shared library, but not a Rasna runtime object "
            "(it has no rasna_identify); make sim-so builds one"
        )
    handle.rasna_identify.restype = POINTER(_Identity)
    handle.rasna_identify.argtypes = []
    identity = handle.rasna_identify().contents
    if identity.abi_version != ABI_VERSION:
        raise RuntimeObjectError(
            f"{path}: has version {identity.abi_version} of the runtime interface, this rasna "
            f"needs {ABI_VERSION}; build the object again with the sources of this version"
        )
    for name, (result, arguments) in _FUNCTIONS.items():
        if not hasattr(handle, name):
            raise RuntimeObjectError(f"{path}: the function {name} is missing; build it again")
        function = getattr(handle, name)
        function.restype, function.argtypes = result, arguments
    text = {
        name: (getattr(identity, name) or b"").decode("utf-8", "replace")
        for name in ("target", "config_hash", "kind", "build")
    }
    return Library(path, handle, int(identity.isa_version), **text)


class Context:
    """One context of an object with a program in it; used by one thread at a time."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._pointer: c_void_p | None = None
        pointer = c_void_p()
        text = ctypes.create_string_buffer(_TEXT_BYTES)
        code = library.handle.rasna_create(byref(pointer), text, _TEXT_BYTES)
        if code:
            raise RuntimeObjectError(
                f"{library.path}: cannot make a context: {text.value.decode('utf-8', 'replace')}"
            )
        self._pointer = pointer

    def check(self, code: int, doing: str) -> None:
        """Raise RuntimeObjectError with the object's text for a code other than 0."""
        if code:
            text = self.library.handle.rasna_error_text(self._pointer) or b""
            raise RuntimeObjectError(
                f"{self.library.path}: {doing} failed with error {code}: "
                + text.decode("utf-8", "replace")
            )

    def load(self, words, input_words: int, output_words: int, scratch_words: int) -> None:
        code = self.library.handle.rasna_load(
            self._pointer, words.ctypes.data, words.size, input_words, output_words, scratch_words
        )
        self.check(code, "loading the program")

    def run(self, inputs, outputs) -> None:
        """inputs, outputs: uint64 (batch, words), contiguous."""
        code = self.library.handle.rasna_run(
            self._pointer, inputs.ctypes.data, outputs.ctypes.data, inputs.shape[0]
        )
        self.check(code, "running the program")

    def counters(self) -> list[int]:
        """Cycles of every instruction of the last image; empty where they are not counted."""
        count = c_uint64()
        call = self.library.handle.rasna_counters
        self.check(call(self._pointer, None, 0, byref(count)), "reading the counters")
        cycles = (c_uint64 * count.value)()
        if count.value:
            self.check(
                call(self._pointer, cycles, count.value, byref(count)), "reading the counters"
            )
        return list(cycles)

    def set_option(self, name: str, value: str) -> None:
        code = self.library.handle.rasna_set_option(self._pointer, name.encode(), value.encode())
        self.check(code, f"setting the option {name}")

    def get_option(self, name: str) -> str:
        value = ctypes.create_string_buffer(_TEXT_BYTES)
        call = self.library.handle.rasna_get_option
        self.check(
            call(self._pointer, name.encode(), value, _TEXT_BYTES), f"reading the option {name}"
        )
        return value.value.decode("utf-8", "replace")

    def read_map(self, slice_index: int, words) -> None:
        """Fill ``words``, uint64 (N,), from the map memory of a slice, from word 0 on."""
        code = self.library.handle.rasna_read_map(
            self._pointer, slice_index, 0, words.size, words.ctypes.data
        )
        self.check(code, "reading the map memory")

    def destroy(self) -> None:
        """Free the context; may be called twice, and happens to garbage by itself."""
        if self._pointer:
            pointer, self._pointer = self._pointer, None
            self.library.handle.rasna_destroy(pointer)

    def __del__(self) -> None:
        self.destroy()
