"""Host steps of a Program: rows of its table, and reading them from a file, checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from ..golden.host import INDICES, KINDS, MOVES
from ..graph import HostStep
from .ports import PortInfo

if TYPE_CHECKING:
    from .manifest import Reader

_MAX_STEPS = 1000
MAX_ELEMS = 1 << 28  # of one result of one image
_NOTHING = {
    key: 0 for key in ("weights", "nonzeros", "macs", "cycles", "bytes", "num_instructions")
}


def host_layers(outputs: Sequence[PortInfo], steps: Sequence[HostStep]) -> list[dict[str, Any]]:
    """A row of ``program.layers`` per step: it takes no cycle of the accelerator."""
    shapes = {port.name: port.shape for port in outputs}
    rows = []
    for step in steps:
        row = {"name": step.name, "operation": f"host {step.kind}", "mapping": "NumPy on the host"}
        sizes = {"input_shapes": [shapes[step.source]], "output_shape": step.shape}
        shapes[step.name] = step.shape
        known = {key: value for key, value in sizes.items() if value and all(value)}
        rows.append({**row, **known, **_NOTHING, "first_instruction": 0})
    return rows


def steps_to_json(steps: Sequence[HostStep]) -> list[dict[str, Any]]:
    """The steps as values that JSON can hold."""
    return [
        {
            **dataclasses.asdict(step), "shape": list(step.shape),
            "attributes": {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in step.attributes.items()
            },
        }
        for step in steps
    ]


def read_steps(read: Reader, outputs: Sequence[PortInfo]) -> tuple[list[HostStep], list[str]]:
    """The steps and the names of the results. Raises RasnaFileError that names the value."""
    known: dict[str, tuple[tuple[int, ...], str]] = {
        port.name: (port.shape, "float32") for port in outputs
    }
    if len(known) < len(outputs):
        raise read.error("outputs", "outputs with different names")
    steps = []
    for index, values in enumerate(read.items("host_steps", _MAX_STEPS)):
        step = _read_step(type(read)(values, read.source, f"manifest: host_steps[{index}]"), known)
        known[step.name] = (step.shape, step.dtype)
        steps.append(step)
    results = read.items("results", _MAX_STEPS)
    if not all(isinstance(name, str) and name in known for name in results):
        raise read.error("results", "names of outputs and host steps")
    return steps, results


def _read_step(
    read: Reader, known: dict[str, tuple[tuple[int, ...], str]]
) -> HostStep:
    name, kind, source = read.text("name"), read.text("kind"), read.text("source")
    if name in known:
        raise read.error("name", "a name that no output and no other step has")
    if kind not in KINDS:
        raise read.error("kind", f"one of {', '.join(KINDS)}")
    if source not in known:
        raise read.error("source", "the name of an output or of a step before")
    shape, dtype = known[source]
    attributes = read.values.get("attributes")
    if not isinstance(attributes, dict) or not KINDS[kind].accepts(attributes, shape):
        raise read.error("attributes", f"those of {kind} for the shape {list(shape)}")
    expected = KINDS[kind].shape(shape, **attributes)
    if prod(expected) > MAX_ELEMS:
        raise read.error("shape", f"sizes of at most {MAX_ELEMS} elements")
    if read.values.get("shape") != list(expected):
        raise read.error("shape", f"{list(expected)}, which {kind} gives")
    wanted = "int64" if kind in INDICES else dtype if kind in MOVES else "float32"
    if read.text("dtype") != wanted:
        raise read.error("dtype", wanted)
    return HostStep(
        name, kind, source, tuple(expected), wanted, read.flag("channels"), attributes
    )
