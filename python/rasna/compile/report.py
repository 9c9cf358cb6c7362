"""What ``rasna.check`` finds: all problems, what could be compiled, where to split the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rasna.Report exists where torch is not installed
    import torch

    from .capture import Captured, Step
    from .problems import Problem
    from .trace import Trace

MAX_UNTIL = 4  # results that a suggestion names; with more it is no help


@dataclass(frozen=True)
class Part:
    """A stretch of the model between two things that cannot be compiled.

    Attributes
    ----------
    compiles : bool
        Whether the whole part can be compiled; otherwise it stays in PyTorch.
    operations : tuple of str
        Its operations as messages name them: ``conv2 (layer1.0.conv2), net.py:31``.
    until : tuple of str
        For the first part: where it ends, as ``rasna.compile(…, until=…)`` takes it.
    """

    compiles: bool
    operations: tuple[str, ...]
    until: tuple[str, ...] = ()

    def __str__(self) -> str:
        first, last = self.operations[0], self.operations[-1]
        span = first if len(self.operations) == 1 else f"{first} to {last}"
        if not self.compiles:
            return f"PyTorch: {'; '.join(self.operations)}"
        count = f"{len(self.operations)} operation{'s' if len(self.operations) > 1 else ''}"
        if not self.until:
            return f"compile: {count}, {span}, as a module of its own"
        names = [repr(name) for name in self.until]
        until = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        return f"compile: {count}, rasna.compile(model, …, until={until})"


@dataclass
class Report:
    """The result of ``rasna.check``; printing it shows everything. True if the model compiles.

    Attributes
    ----------
    model, target : str
        Class of the model, name of the target.
    problems : tuple of Problem
        All that stands in the way, each with place, reason, remedy, node, path, file and line.
    compiled, remaining : tuple of str
        Operations that can be compiled, and those that cannot; FX node names, in order.
    parts : tuple of Part
        A way to split the model; empty if there is nothing to split.
    """

    model: str
    target: str
    problems: tuple[Problem, ...] = ()
    compiled: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    parts: tuple[Part, ...] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether ``rasna.compile`` accepts the model."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    @property
    def until(self) -> str | list[str] | None:
        """What to pass as ``until`` to compile the first part; None if there is nothing."""
        names = self.parts[0].until if self.parts else ()
        return None if not names else names[0] if len(names) == 1 else list(names)

    def __str__(self) -> str:
        if self.ok:
            return f"{self.model} compiles for {self.target}: {len(self.compiled)} operations"
        count = len(self.problems)
        lines = [
            f"{self.model} cannot be compiled for {self.target}, "
            f"{count} problem{'s' if count > 1 else ''}:"
        ]
        lines += [f"  {problem}" for problem in self.problems]
        if self.remaining:
            total = len(self.compiled) + len(self.remaining)
            lines.append(f"{len(self.compiled)} of {total} operations can be compiled")
        if self.parts:
            lines += ["to split the model:", *(f"  {part}" for part in self.parts)]
        return "\n".join(lines)


def make_report(
    model: torch.nn.Module, target: str, problems: Sequence[Problem], captured: Captured | None
) -> Report:
    """The report of a dry run; captured is None where the model could not even be traced."""
    report = Report(type(model).__name__, target, tuple(problems))
    if captured is None:
        return report
    steps = {name: step for name, step in captured.steps.items() if step.is_tensor}
    bad = _bad(steps, report.problems)
    report.compiled = tuple(name for name in steps if name not in bad)
    report.remaining = tuple(name for name in steps if name in bad)
    if bad:
        report.parts = _parts(captured, steps, bad)
    return report


def _bad(steps: dict[str, Step], problems: Sequence[Problem]) -> set[str]:
    """Steps with a problem, found by capture or by a later stage, which knows their node."""
    nodes = {problem.node for problem in problems if problem.node}
    return {n for n, s in steps.items() if n in nodes or s.problem in problems}


def _parts(captured: Captured, steps: dict[str, Step], bad: set[str]) -> tuple[Part, ...]:
    """Parts by the number of things on the way from the inputs that cannot be compiled."""
    level: dict[str, int] = {}
    for name, step in captured.steps.items():
        before = [level[i] + (i in bad) for i in step.inputs if i in level]
        level[name] = max(before, default=0)
    parts: list[Part] = []
    for number in range(max(level.values()) + 1):
        good = [n for n in steps if level[n] == number and n not in bad]
        until: tuple[str, ...] = ()
        if number == 0:
            until, outside = _ends(captured, set(good))
            good = [n for n in good if n not in outside]
        rest = [n for n in steps if level[n] == number and n not in good]
        if good and (number > 0 or until):
            parts.append(Part(True, _texts(steps, good), until))
        else:
            rest = [*good, *rest]
        if rest and parts and not parts[-1].compiles:
            rest_texts = (*parts.pop().operations, *_texts(steps, rest))
            parts.append(Part(False, rest_texts))
        elif rest:
            parts.append(Part(False, _texts(steps, rest)))
    return tuple(parts) if any(part.compiles for part in parts) else ()


def _texts(steps: dict[str, Step], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(steps[name].where) for name in names)


def _ends(captured: Captured, part: set[str]) -> tuple[tuple[str, ...], set[str]]:
    """Names of the results of ``part`` that are needed outside of it, and what lies behind them.

    Where a result is only another shape of a module's result, the part ends at the module.
    """
    ends: dict[str, None] = {}
    for node in captured.trace.graph.nodes:
        if node.name not in part:
            ends.update((i.name, None) for i in node.all_input_nodes if i.name in part)
    if not ends:  # the trace ended before its output
        ends = dict.fromkeys([name for name in captured.steps if name in part][-1:])
    names: dict[str, None] = {}
    outside: set[str] = set()
    for end in ends:
        source, passed = end, set()
        while source in part and result_name(captured.trace, source) == source:
            node = captured.graph.nodes.get(source)
            if node is None or type(node.op).__name__ != "Reshape":
                break
            passed.add(source)
            source = captured.steps[source].inputs[0]
        if source in part and result_name(captured.trace, source) != source:
            outside |= passed
            end = source
        names[result_name(captured.trace, end)] = None
    return (tuple(names) if len(names) <= MAX_UNTIL else ()), outside


def result_name(trace: Trace, node: str) -> str:
    """The outermost module that is called once and whose result is the node, or the node."""
    for path, calls in sorted(trace.results.items(), key=lambda item: item[0].count(".")):
        result = calls[0].result
        if len(calls) == 1 and getattr(result, "name", None) == node:
            return path
    return node
