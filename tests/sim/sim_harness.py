"""ctypes over sim/rasna_sim.h for the tests, independent of rasna.runtime."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]

_U64P = ctypes.POINTER(ctypes.c_uint64)
_PROTOTYPES = {
    "rasna_create": (
        ctypes.c_int32, [ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p, ctypes.c_uint64]
    ),
    "rasna_destroy": (None, [ctypes.c_void_p]),
    "rasna_load": (
        ctypes.c_int32,
        [ctypes.c_void_p, _U64P, *[ctypes.c_uint64] * 4],
    ),
    "rasna_run": (ctypes.c_int32, [ctypes.c_void_p, _U64P, _U64P, ctypes.c_uint64]),
    "rasna_counters": (ctypes.c_int32, [ctypes.c_void_p, _U64P, ctypes.c_uint64, _U64P]),
    "rasna_set_option": (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
    "rasna_get_option": (
        ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
    ),
    "rasna_read_map": (ctypes.c_int32, [ctypes.c_void_p, *[ctypes.c_uint32] * 3, _U64P]),
    "rasna_error_code": (ctypes.c_int32, [ctypes.c_void_p]),
    "rasna_error_text": (ctypes.c_char_p, [ctypes.c_void_p]),
    "rasna_error_instruction": (ctypes.c_int64, [ctypes.c_void_p]),
}


class Identity(ctypes.Structure):
    """rasna_identity of sim/rasna_sim.h."""

    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("isa_version", ctypes.c_uint32),
        ("target", ctypes.c_char_p),
        ("config_hash", ctypes.c_char_p),
        ("kind", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
    ]


class SimError(Exception):
    """A call that failed: ``code`` and the text; ``instruction`` is -1 for none."""

    def __init__(self, code: int, text: str, instruction: int = -1) -> None:
        super().__init__(text)
        self.code, self.text, self.instruction = code, text, instruction


def open_library(path: Path) -> ctypes.CDLL:
    """The object with all prototypes set."""
    library = ctypes.CDLL(str(path))
    library.rasna_identify.restype = ctypes.POINTER(Identity)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _pointer(words: np.ndarray):
    return words.ctypes.data_as(_U64P) if words.size else None


class Context:
    """One context; options by keyword: Context(library, body="plain")."""

    def __init__(self, library: ctypes.CDLL, **options: object) -> None:
        self.library, self.handle = library, ctypes.c_void_p()
        text = ctypes.create_string_buffer(1000)
        code = library.rasna_create(ctypes.byref(self.handle), text, len(text))
        if code:
            raise SimError(code, text.value.decode())
        self.output_words = 0
        for name, value in options.items():
            self.set_option(name, value)

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exc: object) -> None:
        self.library.rasna_destroy(self.handle)
        self.handle = None

    def check(self, code: int) -> None:
        if code:
            assert code == self.library.rasna_error_code(self.handle)
            text = self.library.rasna_error_text(self.handle).decode()
            raise SimError(code, text, self.library.rasna_error_instruction(self.handle))

    def load(self, words, input_words=0, output_words=0, scratch_words=0) -> None:
        words = np.ascontiguousarray(words, np.uint64)
        self.output_words = int(output_words)
        self.check(self.library.rasna_load(
            self.handle, _pointer(words), words.size, int(input_words), int(output_words),
            int(scratch_words),
        ))

    def run(self, inputs, batch: int = 1) -> np.ndarray:
        """uint64 (batch * output_words,)"""
        inputs = np.ascontiguousarray(inputs, np.uint64)
        outputs = np.full(batch * self.output_words, 0xDEAD, np.uint64)
        self.check(
            self.library.rasna_run(self.handle, _pointer(inputs), _pointer(outputs), batch)
        )
        return outputs

    def set_option(self, name: str, value: object) -> None:
        self.check(
            self.library.rasna_set_option(self.handle, name.encode(), str(value).encode())
        )

    def get_option(self, name: str) -> str:
        value = ctypes.create_string_buffer(100)
        self.check(self.library.rasna_get_option(self.handle, name.encode(), value, len(value)))
        return value.value.decode()

    def read_map(self, stripe: int, first_word: int, num_words: int) -> np.ndarray:
        words = np.zeros(num_words, np.uint64)
        self.check(self.library.rasna_read_map(
            self.handle, stripe, first_word, num_words, _pointer(words)
        ))
        return words

    def num_counters(self) -> int:
        count = ctypes.c_uint64(99)
        self.check(self.library.rasna_counters(self.handle, None, 0, ctypes.byref(count)))
        return count.value


def bodies(library: ctypes.CDLL) -> list[str]:
    """The inner loops that this processor can run."""
    with Context(library) as context:
        return context.get_option("bodies").split()


def run_python(code: str, timeout: int = 300, **environment: str) -> subprocess.CompletedProcess:
    """Run Python code in a process of its own, with this folder and the package on its path."""
    env = {**os.environ, **environment}
    env["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), str(ROOT / "python"), str(ROOT)]
    )
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=timeout,
        check=False,
    )
