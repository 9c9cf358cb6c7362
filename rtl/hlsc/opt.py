"""opt, for the LLVM packages of Python that have the library but not the command.

    python opt.py /path/libLLVM.so.19.1 -S -passes=LIST [options] - -o -

Reads LLVM IR from standard input and prints what the passes make of it. A process of its own:
LLVM's options are global, and an error in it ends the process.
"""

from __future__ import annotations

import sys
from ctypes import CDLL, byref, c_char_p, c_int, c_size_t, c_void_p, string_at

RETURN_STATUS = 2  # LLVMReturnStatusAction: the verifier prints nothing
DEFAULT = 0  # relocation and code model
CODEGEN_DEFAULT = 2  # -O2 of the code generator, which opt takes where no -O is given


class OptError(Exception):
    """The IR or an option was refused; the message is LLVM's."""


class Library:
    """The C interface of libLLVM; ``library.Name(...)`` calls LLVMName and returns a pointer."""

    def __init__(self, path: str):
        self._library = CDLL(path)

    def __getattr__(self, name: str):
        function = getattr(self._library, "LLVM" + name)
        function.restype = c_void_p
        return function

    def checked(self, name: str, *arguments) -> None:
        """Call a function that returns whether it failed and takes the message last."""
        function, message = getattr(self._library, "LLVM" + name), c_void_p()
        function.restype = c_int
        if function(*arguments, byref(message)):
            raise OptError(text_at(message.value))


def text_at(pointer: int | None) -> str:
    return string_at(pointer).decode() if pointer else "no reason given"


def read_module(llvm: Library, ir: bytes) -> c_void_p:
    """Parse and verify as opt does, under the name that opt gives to standard input."""
    buffer = c_void_p(
        llvm.CreateMemoryBufferWithMemoryRangeCopy(ir, c_size_t(len(ir)), b"<stdin>")
    )
    module = c_void_p()
    llvm.checked("ParseIRInContext", c_void_p(llvm.ContextCreate()), buffer, byref(module))
    llvm.checked("VerifyModule", module, RETURN_STATUS)
    return module


def target_machine(llvm: Library, module: c_void_p) -> c_void_p:
    """The generic processor of the triple, which passes ask for costs; null without a triple."""
    for part in ("TargetInfo", "Target", "TargetMC"):
        getattr(llvm, f"InitializeX86{part}")()
    triple, target = c_void_p(llvm.GetTarget(module)), c_void_p()
    if not text_at(triple.value):
        return c_void_p()
    llvm.checked("GetTargetFromTriple", triple, byref(target))
    return c_void_p(
        llvm.CreateTargetMachine(target, triple, b"", b"", CODEGEN_DEFAULT, DEFAULT, DEFAULT)
    )


def optimize(llvm: Library, ir: bytes, passes: str, options: list[str]) -> str:
    """IR after the passes.

    The C interface passes over an option that it does not know; a test holds those of hlsc to
    clang's ``-mllvm``, which refuses them.
    """
    words = [b"opt", *(option.encode() for option in options)]
    llvm.ParseCommandLineOptions(len(words), (c_char_p * len(words))(*words), None)
    module = read_module(llvm, ir)
    machine = target_machine(llvm, module)
    settings = c_void_p(llvm.CreatePassBuilderOptions())
    error = llvm.RunPasses(module, passes.encode(), machine, settings)
    if error:
        raise OptError(text_at(llvm.GetErrorMessage(c_void_p(error))))
    llvm.checked("VerifyModule", module, RETURN_STATUS)
    return text_at(llvm.PrintModuleToString(module))


def main(arguments: list[str]) -> int:
    library, *rest = arguments
    passes = next(a for a in rest if a.startswith("-passes=")).removeprefix("-passes=")
    options = [a for a in rest if a not in ("-S", "-o", "-") and not a.startswith("-passes=")]
    try:
        text = optimize(Library(library), sys.stdin.buffer.read(), passes, options)
    except OptError as error:
        print(f"opt: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
