"""From an FX trace and samples to the float graph.

Every FX node is executed with real tensors (two samples) while its handler in
``operators/`` adds the float nodes; shapes of the two are compared at each step. What has
no handler, or what a handler refuses, is noted and capture goes on, so that all problems
of a model are reported at once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ..errors import CompileError
from . import floatgraph as fg
from .context import REFERENCES, Context
from .operators import BATCH, Value, find_handler
from .problems import Problems, Refusal, remedy_for
from .trace import Trace, trace


@dataclass(frozen=True)
class _Stale:
    """A tensor that changed under its name, by an in-place operation on another view of it."""

    changed_by: fg.Where


def capture(
    model: torch.nn.Module, samples: Sequence[torch.Tensor], *, training: bool = False
) -> fg.FloatGraph:
    """Trace ``model`` and describe it as a float graph.

    Parameters
    ----------
    model : float32 module on the CPU. Its class's forward is traced in its present mode.
    samples : one float32 (batch, C, H, W) or (batch, F) tensor per positional input.
    training : True accepts what is random or uses batch statistics in training only.

    Returns
    -------
    FloatGraph
        Named as the FX nodes are; references are paths within ``model``.

    Raises
    ------
    CompileError
        With one line per problem of the model.
    """
    problems = Problems()
    traced = trace(model, len(samples))
    walker = _Walker(model, traced, problems, training)
    context = torch.autocast("cpu", enabled=False)
    with torch.no_grad(), context:
        graph = walker.walk([two_rows(sample) for sample in samples])
    problems.raise_if_any()
    return graph


def two_rows(sample: torch.Tensor) -> torch.Tensor:
    """Exactly two rows, so that a batch of one never hides what squeeze() or view() do."""
    rows = sample[:2] if len(sample) > 1 else torch.cat([sample, sample])
    return rows.detach().clone()


_ASSERTIONS = ("_assert", "_assert_is_none")  # of torch and torch.fx: no results


class _Walker:
    """Executes the FX nodes in order; ``known`` and ``real`` hold what each of them gave."""

    def __init__(
        self, root: torch.nn.Module, traced: Trace, problems: Problems, training: bool
    ) -> None:
        self.root = root
        self.trace = traced
        self.problems = problems
        self.context = Context(root, 2, training)
        self.known: dict[str, Any] = {}  # Value, reference, Python value or _Stale
        self.real: dict[str, Any] = {}

    def walk(self, samples: list[torch.Tensor]) -> fg.FloatGraph:
        """The float graph; problems are added to ``problems``."""
        for node in self.trace.graph.nodes:
            self.context.where = self.trace.where[node.name]
            if node.op == "placeholder":
                self._placeholder(node, samples)
            elif node.op == "get_attr":
                self._get_attr(node)
            elif node.op == "output":
                self._output(node)
            else:
                self._call(node)
        return self.context.graph

    def _placeholder(self, node: fx.Node, samples: list[torch.Tensor]) -> None:
        graph = self.context.graph
        index = len(graph.inputs)
        if index == len(samples):  # a parameter that takes its default
            self.known[node.name] = self.real[node.name] = None
            return
        value = self.context.add(fg.Input(index), [], samples[index].shape[1:])
        graph.inputs.append(value.name)
        self.known[node.name], self.real[node.name] = value, samples[index]

    def _get_attr(self, node: fx.Node) -> None:
        path = str(node.target)
        constant = self.trace.constants.get(path)
        ref = fg.Param(path) if constant is None else fg.Const(constant)
        self.known[node.name], self.real[node.name] = ref, fg.fetch(self.root, ref)

    def _call(self, node: fx.Node) -> None:
        if getattr(node.target, "__name__", "") in _ASSERTIONS:
            self.known[node.name] = self.real[node.name] = None
            return
        versions = self._versions(node)
        real = self.context.real = self._execute(node)
        try:
            known = self._checked(self._handle(node), real)
        except Refusal as refusal:
            self.problems.add(self.context.where, refusal.what, refusal.remedy)
            known = self._opaque(real)
        self.known[node.name], self.real[node.name] = known, real
        self._follow_inplace(node, versions)

    def _execute(self, node: fx.Node) -> Any:
        args = fx.node.map_arg(node.args, lambda n: self.real[n.name])
        kwargs = fx.node.map_arg(node.kwargs, lambda n: self.real[n.name])
        target: Any = node.target
        try:
            if node.op == "call_module":
                return self.root.get_submodule(target)(*args, **kwargs)
            if node.op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)
        except Exception as error:
            shapes = ", ".join(
                str(tuple(a.shape)) for a in args if isinstance(a, torch.Tensor)
            )
            self.problems.raise_if_any()
            raise CompileError(
                f"{self.context.where}: PyTorch cannot compute this for the samples "
                f"({str(error).splitlines()[0]}); its inputs have the shapes {shapes}: "
                f"check the samples and channel_last"
            ) from error

    def _handle(self, node: fx.Node) -> Any:
        """What the handler of the node makes of it."""
        args = fx.node.map_arg(node.args, lambda n: self.known[n.name])
        kwargs = dict(fx.node.map_arg(node.kwargs, lambda n: self.known[n.name]))
        leaves = list(_leaves([args, kwargs]))
        for leaf in leaves:
            if isinstance(leaf, _Stale):
                raise Refusal(
                    f"using a tensor that {leaf.changed_by} changes in place through "
                    f"another view is not supported",
                    "remove inplace=True there",
                )
        name, handler = find_handler(self.root, node)
        constant = not any(isinstance(leaf, Value) or leaf is BATCH for leaf in leaves)
        if constant and node.op != "call_module":
            return self._constant(node, args, kwargs)
        if kwargs.pop("out", None) is not None:
            raise Refusal(f"{name} with out= is not supported", "assign its result instead")
        self._check_batch_size(node, leaves)
        if handler is None:
            raise Refusal(f"{name} is not supported", remedy_for(name))
        if node.op != "call_module":
            return handler(self.context, *args, **kwargs)
        module = self.root.get_submodule(str(node.target))
        return handler(self.context, module, node.target, *args, *kwargs.values())

    def _check_batch_size(self, node: fx.Node, leaves: list) -> None:
        """The batch size may be read and passed on, but not computed with."""
        if BATCH in leaves and not any(isinstance(leaf, Value) for leaf in leaves):
            if node.target is not operator.getitem:
                raise Refusal(
                    "arithmetic on the batch size is not supported",
                    "use x.size(0) in view and reshape only",
                )

    def _constant(self, node: fx.Node, args: tuple, kwargs: dict) -> Any:
        """The result of a call that reads parameters, constants and numbers only."""
        real = self.context.real
        if not isinstance(real, torch.Tensor):
            return real
        if not any(isinstance(leaf, REFERENCES) for leaf in _leaves([args, kwargs])):
            return fg.Const(real)
        target: Any = node.target
        function = _Method(target) if node.op == "call_method" else target
        return fg.Derived(function, tuple(args), kwargs)

    def _checked(self, known: Any, real: Any) -> Any:
        """``known``, after comparing its shape and dtype with what PyTorch computed."""
        if isinstance(known, Value):
            expected = (self.context.batch, *known.shape)
            if tuple(real.shape) != expected or real.dtype != torch.float32:
                raise Refusal(
                    f"a result of shape {tuple(real.shape)} and {real.dtype}, "
                    f"where {expected} and torch.float32 were expected, is not supported",
                    "please report this model",
                )
        return known

    def _opaque(self, real: Any) -> Any:
        """A stand-in for the result of what is not supported."""
        if isinstance(real, torch.Tensor):
            return self.context.add(fg.Opaque(), [], real.shape[1:])
        if isinstance(real, (tuple, list)):
            return tuple(self._opaque(item) for item in real)
        return real

    def _versions(self, node: fx.Node) -> dict[str, int]:
        """Version counters of the tensors that a node reads."""
        reals = {n.name: self.real[n.name] for n in node.all_input_nodes}
        return {n: r._version for n, r in reals.items() if isinstance(r, torch.Tensor)}

    def _follow_inplace(self, node: fx.Node, versions: dict[str, int]) -> None:
        """After ``relu_(x)`` every other name of x means the new value, or may not be used."""
        for name, version in versions.items():
            changed = self.real[name]
            if changed._version == version:
                continue
            before, where = self.known[name], self.context.where
            if not isinstance(before, Value) or changed is not self.real[node.name]:
                self.problems.add(
                    where, "changing a constant or an argument in place is not supported",
                    "use the operation that returns a new tensor",
                )  # fmt: skip
                continue
            for other, known in self.known.items():
                real = self.real[other]
                if other == node.name or not isinstance(known, Value):
                    continue
                if known == before:
                    self.known[other] = self.known[node.name]
                elif isinstance(real, torch.Tensor) and _share(real, changed):
                    self.known[other] = _Stale(where)

    def _output(self, node: fx.Node) -> None:
        known = fx.node.map_arg(node.args[0], lambda n: self.known[n.name])
        self.context.graph.structure = self._structure(known)
        if not self.context.graph.outputs:
            self.problems.add(
                "output", "the model returns no tensor that it computes",
                "return at least one",
            )  # fmt: skip

    def _structure(self, known: Any) -> int | dict:
        outputs = self.context.graph.outputs
        if isinstance(known, Value):
            outputs.append(known.name)
            return len(outputs) - 1
        if isinstance(known, dict) and all(isinstance(key, str) for key in known):
            return {"dict": {key: self._structure(item) for key, item in known.items()}}
        if isinstance(known, (tuple, list)):
            kind = "tuple" if isinstance(known, tuple) else "list"
            return {kind: [self._structure(item) for item in known]}
        what = f"an output that is {_describe(known)} is not supported"
        self.problems.add("output", what, "return computed tensors in tuples, lists or dicts only")
        return 0


class _Method:
    """A tensor method as a function (picklable, unlike a lambda)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(tensor, self.name)(*args, **kwargs)


def _describe(known: Any) -> str:
    if isinstance(known, _Stale):
        return f"changed in place by {known.changed_by} through another view"
    if isinstance(known, REFERENCES):
        return "a parameter or constant"
    return f"a {type(known).__name__}"


def _leaves(value: Any):
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _share(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
