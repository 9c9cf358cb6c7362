"""The Program class."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import isa
from ..errors import RasnaValueError
from ..graph import HostStep, QuantGraph
from ..structure import Structure
from ..targets import Target, get_target
from .host import host_layers
from .listing import program_text
from .ports import PortInfo, make_ports
from .selfcheck import attach_selfcheck

if TYPE_CHECKING:
    from ..runtime.base import BaseRuntime


@dataclass(eq=False)
class Program:
    """A model compiled for one target.

    Attributes
    ----------
    target : str
        Name of the target.
    config_hash : str
        16 hexadecimal digits over the sizes of the machine, ``Target.config_hash``.
    words : uint64 (N,)
        The PROGRAM segment: instructions up to END, then the streams.
    inputs, outputs : list of PortInfo
        What the accelerator reads and computes, in the order of the model's arguments and of its
        outputs from left to right.
    host_steps : list of HostStep
        What a runtime makes of the outputs in NumPy, in order: softmax, argmax and the like.
    results : list of str
        What the model returns: names of outputs and host steps.
    structure : int or dict
        How results are nested, see ``rasna.structure``.
    input_words, output_words, scratch_words : int
        Words of the other segments, for one image.
    channel_last : bool
        How the samples were given to ``compile``; runs choose for themselves.
    layers : list of dict
        One per layer, in order: name, operation, input_shapes, output_shape, weights, nonzeros,
        macs, cycles (estimated), bytes, first_instruction, num_instructions, mapping, and
        output (the tensor's name) and checksum for the self-check. All are optional but name.
    selfcheck_seed, selfcheck_expected
        Seed of the self-check's input and the OUTPUT segment that belongs to it, or None.
    isa_version, compiler_version
    """

    target: str
    config_hash: str
    words: np.ndarray
    inputs: list[PortInfo]
    outputs: list[PortInfo]
    input_words: int
    output_words: int
    scratch_words: int = 0
    structure: Structure = 0
    channel_last: bool = True
    layers: list[dict[str, Any]] = field(default_factory=list)
    host_steps: list[HostStep] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    selfcheck_seed: int = 0
    selfcheck_expected: np.ndarray | None = None
    isa_version: int = isa.ISA_VERSION
    compiler_version: str = ""

    def __post_init__(self) -> None:
        if not self.host_steps and not self.results:
            self.results = [port.name for port in self.outputs]

    @classmethod
    def from_graph(
        cls,
        graph: QuantGraph,
        target: Target | str,
        words: np.ndarray,
        scratch_words: int,
        layers: list[dict[str, Any]],
        channel_last: bool = True,
        selfcheck_seed: int | None = 0,
    ) -> Program:
        """What the back end calls: a Program around the instructions made from ``graph``.

        Inputs and outputs lie in their segments one after another, in the order of
        ``graph.inputs`` and ``graph.outputs``. With ``selfcheck_seed`` None the Program has no
        self-check.
        """
        from .. import __version__

        target = get_target(target)
        inputs, input_words = make_ports(graph.inputs, graph.tensors)
        outputs, output_words = make_ports(graph.outputs, graph.tensors)
        program = cls(
            target=target.name, config_hash=target.config_hash,
            words=np.ascontiguousarray(words, np.uint64), inputs=inputs, outputs=outputs,
            input_words=input_words, output_words=output_words, scratch_words=scratch_words,
            structure=graph.structure, channel_last=channel_last,
            host_steps=list(graph.host_steps), results=list(graph.results),
            layers=[*layers, *host_layers(outputs, graph.host_steps)],
            compiler_version=__version__,
        )
        if selfcheck_seed is not None:
            attach_selfcheck(program, graph, selfcheck_seed)
        return program

    @property
    def num_instructions(self) -> int:
        """Instructions, END included."""
        heads = self.words[:: isa.INSTRUCTION_WORDS] & np.uint64(0xFF)
        ends = np.flatnonzero(heads == isa.Opcode.END)
        return int(ends[0]) + 1 if ends.size else 0

    def __str__(self) -> str:
        return program_text(self)

    def __repr__(self) -> str:
        return (
            f"<rasna.Program for {self.target}: {len(self.layers)} layers, "
            f"{self.num_instructions} instructions, {self.words.size * isa.WORD_BYTES:,} bytes>"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``.rasna`` file, atomically: the same Program gives the same bytes.

        Raises
        ------
        RasnaFileError when the path is a directory, its directory does not exist, or it may
        not be written.
        """
        from .container import save

        save(self, path)

    def to_runtime(self, path: str | os.PathLike[str]) -> BaseRuntime:
        """Make this Program runnable.

        Parameters
        ----------
        path : a shared library (``.so``, ``.dylib`` or ``.dll``) gives a
            :class:`rasna.RuntimeCSim`; anything else is taken for a bitstream and gives a
            :class:`rasna.Runtime`.

        Raises
        ------
        TargetMismatchError when the object is for another target, ISA version or configuration.
        RuntimeObjectError when the object is missing or is not a Rasna runtime object.
        """
        from ..runtime import Runtime, RuntimeCSim

        if not isinstance(path, (str, os.PathLike)):
            raise RasnaValueError(
                f"to_runtime needs the path of a runtime object, {type(path).__name__} was given"
            )
        path = os.fspath(path)
        is_library = path.endswith((".so", ".dylib", ".dll"))
        return RuntimeCSim(self, path) if is_library else Runtime(self, path)
