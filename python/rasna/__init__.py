"""Rasna: a PyTorch model in, a sparse quantised program for the Rasna accelerator out.

This module is the list of what users may rely on. Everything is imported on first use:
``import rasna``, :func:`load` and the runtimes need neither torch nor a compiler.

    rasna.tune(model, sp=0.8)                 # sparsify and quantise, in place; fine-tune after it
    program = rasna.compile(model, sample)    # a Program
    program.save("model.rasna")
    program = rasna.load("model.rasna")
    runtime = program.to_runtime(rasna.simulator("pynq-z2"))
    y = runtime(x)
"""

from __future__ import annotations

import sys
import types
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from .compile.report import Report
    from .errors import (
        BoardMemoryError,
        BoardTimeoutError,
        BuildError,
        ClosedError,
        CompileError,
        GoldenError,
        NotOnBoardError,
        RasnaError,
        RasnaFileError,
        RasnaTypeError,
        RasnaValueError,
        RuntimeObjectError,
        SelfCheckError,
        TargetMismatchError,
        TuneError,
    )
    from .program import Program, load
    from .runtime import Runtime, RuntimeCSim

__version__ = "0.1.0"

_HOMES = {
    "Report": "compile.report",
    "Program": "program",
    "load": "program",
    "Runtime": "runtime",
    "RuntimeCSim": "runtime",
    "BoardMemoryError": "errors",
    "BoardTimeoutError": "errors",
    "BuildError": "errors",
    "ClosedError": "errors",
    "CompileError": "errors",
    "GoldenError": "errors",
    "NotOnBoardError": "errors",
    "RasnaError": "errors",
    "RasnaFileError": "errors",
    "RasnaTypeError": "errors",
    "RasnaValueError": "errors",
    "RuntimeObjectError": "errors",
    "SelfCheckError": "errors",
    "TargetMismatchError": "errors",
    "TuneError": "errors",
}

__all__ = [
    "__version__",
    "check",
    "compile",
    "simulator",
    "tune",
    "Report",
    "Program",
    "load",
    "Runtime",
    "RuntimeCSim",
    "BoardMemoryError",
    "BoardTimeoutError",
    "BuildError",
    "ClosedError",
    "CompileError",
    "GoldenError",
    "NotOnBoardError",
    "RasnaError",
    "RasnaFileError",
    "RasnaTypeError",
    "RasnaValueError",
    "RuntimeObjectError",
    "SelfCheckError",
    "TargetMismatchError",
    "TuneError",
]


def tune(
    model: Any,
    sp: float = 0.8,
    ab: int = 8,
    wb: int = 8,
    ib: int = 17,
    chpad: bool = True,
    strategy: str = "auto",
) -> Any:
    """Prepare a model for sparse quantised training, in place. Needs torch.

    Parameters
    ----------
    model : torch.nn.Module
    sp : ratio of weights that become zero, 0 <= sp < 1
    ab, wb : bits of activations and of weights, 2 to 8
    ib : bits of intermediate values, 12 to 24
    chpad : make the padding of every Conv2d circular
    strategy : "auto" leaves the first convolution, depthwise convolutions and linear layers
        dense; "all" prunes every supported Conv2d and Linear

    See ``rasna.tune.tune`` (the package) for what is refused and how.
    """
    return _call("tune", "tune", model, sp=sp, ab=ab, wb=wb, ib=ib, chpad=chpad, strategy=strategy)


def compile(
    model: Any,
    *samples: Any,
    channel_last: bool | None = None,
    target: Any = "pynq-z2",
    until: Any = None,
) -> Program:
    """Compile a model in eval mode to a :class:`Program`. Needs torch.

    Parameters
    ----------
    model : torch.nn.Module
    *samples : one array or tensor per input of the model, batch first. Their values choose
        the fixed-point types.
    channel_last : 4-D samples are (batch, H, W, C); False: (batch, C, H, W)
    target : name of a target, see ``rasna.targets``
    until : module path or FX node, or a list of them, whose result the Program computes in
        place of the model's; what comes behind it stays in PyTorch

    Raises
    ------
    CompileError that lists everything in the model that cannot be compiled.
    """
    return _call(
        "compile", "compile", model, *samples, channel_last=channel_last, target=target,
        until=until,
    )  # fmt: skip


def check(
    model: Any,
    *samples: Any,
    channel_last: bool | None = None,
    target: Any = "pynq-z2",
    until: Any = None,
) -> Report:
    """Say all that stands in the way of :func:`compile`, and how to split the model. Needs torch.

    Parameters
    ----------
    model, *samples, channel_last, target, until : as for :func:`compile`

    Returns
    -------
    Report
        ``print`` shows it; it is true if the model compiles. ``problems``, ``compiled``,
        ``remaining``, ``parts`` and ``until`` (what the first part ends with) are its data.
        Nothing is raised that is due to the model.
    """
    return _call(
        "compile", "check", model, *samples, channel_last=channel_last, target=target, until=until
    )


def simulator(target: Any = "pynq-z2") -> Path:
    """Path of a simulator of ``target`` for ``Program.to_runtime``, built if need be. Needs NumPy.

    The first of these: the file that the environment variable ``RASNA_SIMULATOR`` names, or the
    one for this target in the folder that it names; the file of a release, such as
    ``rasna-pynq-z2-linux-x86_64.so``, in the cache folder; the one that was built there before;
    one that is built there now, in some 10 seconds, with ``CXX``, g++, clang++ or the Python
    package ziglang. The cache folder is ``RASNA_CACHE`` or ``rasna`` in the user's cache folder.

    Parameters
    ----------
    target : name of a target, see ``rasna.targets``

    Returns
    -------
    pathlib.Path

    Raises
    ------
    RasnaValueError
        There is no such target.
    BuildError
        There is no simulator and no compiler, or the compiler failed.
    RasnaFileError
        What ``RASNA_SIMULATOR`` names is not there, or the cache folder cannot be written.
    RuntimeObjectError, TargetMismatchError
        The file that was given is no simulator, or one of another target or version.
    """
    return import_module(f"{__name__}.simbuild.locate").simulator(target)


def _call(package: str, name: str, *arguments: Any, **options: Any) -> Any:
    """Call the function of a package that does the work of ``rasna.<name>``."""
    try:
        function = getattr(import_module(f"{__name__}.{package}"), name)
        return function(*arguments, **options)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ModuleNotFoundError(
            f"rasna.{name} needs PyTorch, which is not installed: pip install torch; "
            "rasna.load and the runtimes work without it",
            name="torch",
        ) from error


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rasna' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Keeps ``rasna.tune`` and ``rasna.compile`` the functions.

    The import system binds a subpackage in its parent after importing it, which would
    replace the function of the same name. Packages stay reachable by
    ``from rasna.tune import ...``.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("tune", "compile") and isinstance(value, types.ModuleType):
            return
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
