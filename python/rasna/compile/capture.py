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

from ..structure import Structure, is_field, is_name, record_key, record_kind
from . import floatgraph as fg
from .context import REFERENCES, Context
from .operators import BATCH, TAKES_CONSTANTS, Record, Value, find_handler
from .problems import Problem, Problems, Refusal, ended_before, first_line, remedy_for
from .report import result_name
from .samples import was_moved
from .trace import Trace, call_module, trace_all
from .until import Until, cut


@dataclass(frozen=True)
class _Stale:
    """A tensor that changed under its name, by an in-place operation on another view of it."""

    changed_by: fg.Where


@dataclass(frozen=True)
class _Missing:
    """Stands for a result that could not be computed; the reason has been noted."""


@dataclass
class Step:
    """One executed FX node: what became of it, for reports.

    inputs: names of the nodes that it reads. is_tensor: it computes tensors, which sizes and
    constants are not. problem: why it cannot be compiled.
    """

    where: fg.Where
    op: str
    inputs: list[str]
    is_tensor: bool = True
    problem: Problem | None = None


@dataclass
class Captured:
    """A captured model and what is wrong with it.

    Attributes
    ----------
    graph : FloatGraph
        With an Opaque node for every result of what is not supported.
    problems : Problems
        All that stands in the way of the outputs.
    steps : dict
        FX node name to Step, in order.
    opaque : dict
        Name of an Opaque node to (float nodes that it was made from, its value).
    trace : Trace
    """

    graph: fg.FloatGraph
    problems: Problems
    steps: dict[str, Step]
    opaque: dict[str, tuple[list[str], torch.Tensor]]
    trace: Trace


def capture(
    model: torch.nn.Module,
    samples: Sequence[torch.Tensor],
    *,
    training: bool = False,
    until: Until = None,
) -> fg.FloatGraph:
    """Trace ``model`` and describe it as a float graph.

    Parameters
    ----------
    model : float32 module on the CPU. Its class's forward is traced in its present mode.
    samples : one float32 (batch, C, H, W) or (batch, F) tensor per positional input.
    training : True accepts what is random or uses batch statistics in training only.
    until : module path or FX node (or several) at whose result the model ends.

    Returns
    -------
    FloatGraph
        Named as the FX nodes are; references are paths within ``model``.

    Raises
    ------
    CompileError
        With one line per problem of the model.
    """
    captured = capture_all(model, samples, training=training, until=until)
    captured.problems.raise_if_any()
    return captured.graph


def capture_all(
    model: torch.nn.Module,
    samples: Sequence[torch.Tensor],
    *,
    training: bool = False,
    until: Until = None,
) -> Captured:
    """As :func:`capture`, but what is wrong with the model is in the result.

    Raises CompileError for a wrong number of samples, RasnaValueError for ``until``.
    """
    traced = cut(trace_all(model, len(samples), samples), model, until)
    walker = _Walker(model, traced, training)
    walker.moved = {i for i, sample in enumerate(samples) if was_moved(sample)}
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        return walker.walk([two_rows(sample) for sample in samples])


def two_rows(sample: torch.Tensor) -> torch.Tensor:
    """Exactly two rows, so that a batch of one never hides what squeeze() or view() do."""
    rows = sample[:2] if len(sample) > 1 else torch.cat([sample, sample])
    return rows.detach().clone()


class _NotComputable(Exception):
    """PyTorch raised for a node: what it said, and what to do."""


_ASSERTIONS = ("_assert", "_assert_is_none")  # of torch and torch.fx: no results


class _Walker:
    """Executes the FX nodes in order; ``known`` and ``real`` hold what each of them gave."""

    def __init__(self, root: torch.nn.Module, traced: Trace, training: bool) -> None:
        self.root = root
        self.trace = traced
        self.problems = Problems()
        self.context = Context(root, 2, training)
        self.context.on_host_read = self._refuse_host
        self.nodes = {node.name: node for node in traced.graph.nodes}
        self.known: dict[str, Any] = {}  # Value, reference, Python value, _Stale or _Missing
        self.real: dict[str, Any] = {}
        self.steps: dict[str, Step] = {}
        self.opaque: dict[str, tuple[list[str], torch.Tensor]] = {}
        self.made_by: dict[str, Problem] = {}  # Opaque nodes that refusals left
        self.sticky: list[Problem] = []  # problems that matter whatever the outputs need
        self.moved: set[int] = set()  # 3-D samples that were given with their channels last

    def walk(self, samples: list[torch.Tensor]) -> Captured:
        """Execute everything; problems on which no output depends are forgotten."""
        waiting = sorted(self.trace.problems, key=lambda item: item[0])
        for number, node in enumerate(self.trace.graph.nodes):
            while waiting and waiting[0][0] <= number:
                self._note(waiting.pop(0)[1])
            self.context.where = self.trace.where[node.name]
            if node.op == "placeholder":
                self._placeholder(node, samples)
            elif node.op == "get_attr":
                self._get_attr(node)
            elif node.op == "output":
                self._output(node)
            else:
                self._call(node)
        for _, problem in waiting:
            self._note(problem)
        self._forget_what_no_output_needs()
        graph = self.context.graph
        return Captured(graph, self.problems, self.steps, self.opaque, self.trace)

    def _note(self, problem: Problem) -> None:
        self.problems.extend([problem])
        self.sticky.append(problem)

    def _add(self, where: fg.Where | str, what: str, remedy: str) -> Problem:
        """A problem that matters whatever the outputs need."""
        found = Problems()
        found.add(where, what, remedy)
        self._note(found.found[0])
        return found.found[0]

    def _forget_what_no_output_needs(self) -> None:
        if not self.trace.complete or not self.context.graph.outputs:
            return
        needed: set[str] = set()
        waiting = list(self.context.graph.outputs)
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                sources = self.opaque[name][0] if name in self.opaque else ()
                waiting += [*sources, *self.context.graph.nodes[name].inputs]
        kept = [self.made_by[name] for name in needed if name in self.made_by]
        self.problems.found = [
            p for p in self.problems.found if p in kept or p in self.sticky
        ]

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
        step = Step(self.context.where, node.op, [n.name for n in node.all_input_nodes])
        self.steps[node.name] = step
        if any(isinstance(self.known[n.name], _Missing) for n in node.all_input_nodes):
            self._skip(node, step)
            return
        versions = self._versions(node)
        try:
            real = self.context.real = self._execute(node)
        except _NotComputable as error:
            step.problem = self._add(self.context.where, *error.args)
            self.known[node.name] = self.real[node.name] = _Missing()
            return
        step.is_tensor = any(isinstance(leaf, torch.Tensor) for leaf in _leaves(real))
        try:
            if node.op == "call_module" and node.target in self.trace.opaque:
                known = self._opaque(node, real, None)
                step.problem = next(p for p in self.sticky if p.path == node.target)
            else:
                known = self._checked(self._handle(node), real)
        except Refusal as refusal:
            step.problem = self._refused(refusal, node)
            known = self._opaque(node, real, step.problem)
        else:
            computed = any(isinstance(leaf, Value) for leaf in _leaves(known))
            step.is_tensor = computed and not isinstance(known, Record)
        self.known[node.name], self.real[node.name] = known, real
        self._follow_inplace(node, versions)

    def _refuse_host(self, name: str) -> None:
        """Another operation reads a host step: a problem of the first one in its chain."""
        nodes = self.context.graph.nodes
        chain = [name]
        while isinstance(nodes[nodes[chain[-1]].inputs[0]].op, fg.Host):
            chain.append(nodes[chain[-1]].inputs[0])
        where = nodes[chain[-1]].where
        called = find_handler(self.root, self.nodes[where.node])[0]
        found = Problems()
        remedy = ended_before(remedy_for(called), self._ends(self.nodes[where.node]))
        found.add(where, f"{called} in front of other operations is not supported", remedy)
        problem = found.found[0]
        self.problems.extend([problem])
        for link in chain:
            node = nodes[link]
            self.steps[node.where.node].problem = problem
            self.made_by[link] = problem
            self.opaque[link] = (list(node.inputs), self.real.get(node.where.node, torch.zeros(0)))
            node.op, node.inputs = fg.Opaque(), []

    def _refused(self, refusal: Refusal, node: fx.Node) -> Problem:
        for source in node.all_input_nodes:
            for leaf in _leaves(self.known[source.name]):
                if isinstance(leaf, Value) and self.context.is_host(leaf):
                    self._refuse_host(leaf.name)
        noted = self._noted_here()
        if noted is not None:
            return noted
        found = Problems()
        remedy = ended_before(refusal.remedy, self._ends(node))
        found.add(self.context.where, refusal.what, remedy)
        self.problems.extend(found.found)
        return found.found[0]

    def _ends(self, node: fx.Node) -> list[str] | None:
        """Where the model has to end before ``node``: names for ``until``, none for inputs.

        None where that is no remedy: something before it cannot be compiled either, or the model
        is captured for training, as a whole.
        """
        names: dict[str, None] = {}
        for source in node.all_input_nodes:
            known = self.known[source.name]
            values = [leaf for leaf in _leaves(known) if isinstance(leaf, Value)]
            if not values:
                continue
            if self.context.training or self._opaque_before([v.name for v in values]):
                return None
            if source.op != "placeholder":
                names[result_name(self.trace, source.name)] = None
        return list(names)

    def _opaque_before(self, names: list[str]) -> bool:
        nodes, seen, waiting = self.context.graph.nodes, set(), list(names)
        while waiting:
            name = waiting.pop()
            if isinstance(nodes[name].op, fg.Opaque):
                return True
            if name not in seen:
                seen.add(name)
                waiting += nodes[name].inputs
        return False

    def _noted_here(self) -> Problem | None:
        """What the trace noted on the present line: of ``if x.sum() > 0`` one problem is enough."""
        where = self.context.where
        for _, problem in self.trace.problems:
            if problem.file and (problem.file, problem.line) == (where.file, where.line):
                return problem
        return None

    def _skip(self, node: fx.Node, step: Step) -> None:
        """A node behind one that could not be computed: only its kind can be checked."""
        self.known[node.name] = self.real[node.name] = _Missing()
        name, handler = find_handler(self.root, node)
        if handler is None and node.target not in self.trace.opaque:
            step.problem = self._noted_here() or self._add(
                self.context.where, f"{name} is not supported", remedy_for(name)
            )

    def _execute(self, node: fx.Node) -> Any:
        args = fx.node.map_arg(node.args, lambda n: self.real[n.name])
        kwargs = fx.node.map_arg(node.kwargs, lambda n: self.real[n.name])
        target: Any = node.target
        try:
            if node.op == "call_module":
                return call_module(self.root, target, args, kwargs)
            if node.op == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)
        except Exception as error:
            leaves = [*_leaves([args, kwargs])]
            shapes = [str(tuple(a.shape)) for a in leaves if isinstance(a, torch.Tensor)]
            raise _NotComputable(
                f"PyTorch cannot compute this for inputs of the shapes {', '.join(shapes)} "
                f"({first_line(error)})",
                self._other_layout(node, leaves) or "check the samples and channel_last",
            ) from error

    def _other_layout(self, node: fx.Node, leaves: list) -> str:
        """Which channel_last would fit, where a first Conv2d finds its channels elsewhere."""
        module = self.root.get_submodule(str(node.target)) if node.op == "call_module" else None
        if not isinstance(module, torch.nn.Conv2d) or leaves[0].dim() != 4:
            return ""
        if node.all_input_nodes[0].op != "placeholder" or self.context.training:
            return ""
        height, width = leaves[0].shape[2:]
        if module.in_channels not in (height, width):
            return ""
        last = module.in_channels == width
        return (
            f"the {module.in_channels} channels that it needs come {'last' if last else 'second'} "
            f"in the samples: pass channel_last={last}"
        )

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
        if node.op == "call_method" and name == "is_floating_point":
            return self.context.real
        if handler is None:
            raise Refusal(f"{name} is not supported", remedy_for(name))
        given = args[0] if args else kwargs.get("input")
        if isinstance(given, REFERENCES) and handler not in TAKES_CONSTANTS:
            raise Refusal(
                f"{name} of a parameter or constant is not supported",
                "compute it in __init__ and keep the result as a buffer, or give it a computed "
                "tensor",
            )
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
            op = self.context.graph.nodes[known.name].op
            dtype = op.dtype if isinstance(op, fg.Host) else torch.float32
            if tuple(real.shape) != expected or real.dtype != dtype:
                raise Refusal(
                    f"a result of shape {tuple(real.shape)} and {real.dtype}, "
                    f"where {expected} and {dtype} were expected, is not supported",
                    "please report this model",
                )
            self._check_channels(known)
        return known

    def _check_channels(self, known: Value) -> None:
        """Refuse samples with channels last where the model itself adds the channels."""
        nodes = self.context.graph.nodes
        if not isinstance(nodes[known.name].op, fg.Reshape):
            return
        source = nodes[nodes[known.name].inputs[0]]
        if not isinstance(source.op, fg.Input) or source.op.index not in self.moved:
            return
        if known.shape == (1, *source.shape):
            given = ", ".join(["batch", *map(str, source.shape[::-1])])
            raise Refusal(
                f"the model adds the channels of input {source.name} here, so that none can be "
                f"last in its samples ({given})",
                "pass channel_last=False to compile and to the runtime, which leaves the "
                "dimensions in the order of the model",
            )

    def _opaque(self, node: fx.Node, real: Any, problem: Problem | None) -> Any:
        """A stand-in for the result of what is not supported."""
        if isinstance(real, torch.Tensor) and real.dim() > 0:
            value = self.context.add(fg.Opaque(), [], real.shape[1:])
            known = [self.known[n.name] for n in node.all_input_nodes]
            sources = [leaf.name for leaf in _leaves(known) if isinstance(leaf, Value)]
            self.opaque[value.name] = (sources, real)
            if problem is not None:
                self.made_by[value.name] = problem
            return value
        if isinstance(real, (tuple, list)):
            return tuple(self._opaque(node, item, problem) for item in real)
        if problem is not None:  # a Python value that depends on data: whoever uses it is wrong
            self.sticky.append(problem)
        return _Missing() if isinstance(real, torch.Tensor) else real

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
                self._add(
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
        computed = any(isinstance(leaf, (Value, _Missing)) for leaf in _leaves(known))
        if not computed:
            self._add(
                "output", "the model returns no tensor that it computes", "return at least one"
            )

    def _record(self, record: Record) -> Structure:
        kind, name = str(record_kind(record.kind)), record.kind.__name__
        if is_name(name) and all(is_field(kind, field) for field in record.fields):
            self.context.graph.classes[record_key(kind, name, record.fields)] = record.kind
            fields = {field: self._structure(item) for field, item in record.fields.items()}
            return {kind: [name, fields]}
        self._add(
            "output", f"an output of the class {name} is not supported",
            "give the class and its fields names that do not begin with underscores",
        )  # fmt: skip
        return 0

    def _structure(self, known: Any) -> Structure:
        outputs = self.context.graph.outputs
        if isinstance(known, Value):
            outputs.append(known.name)
            return len(outputs) - 1
        if known is None:
            return None
        if isinstance(known, Record):
            return self._record(known)
        if isinstance(known, dict) and all(isinstance(key, str) for key in known):
            return {"dict": {key: self._structure(item) for key, item in known.items()}}
        if isinstance(known, (tuple, list)):
            kind = "tuple" if isinstance(known, tuple) else "list"
            return {kind: [self._structure(item) for item in known]}
        what = f"an output that is {_describe(known)} is not supported"
        if not isinstance(known, _Missing):
            self._add(
                "output", what,
                "return computed tensors in tuples, lists, dicts, named tuples or dataclasses only",
            )  # fmt: skip
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
    if isinstance(known, dict):
        return "a dict with keys that are no strings"
    return f"a {type(known).__name__}"


def _leaves(value: Any):
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    elif isinstance(value, Record):
        yield from _leaves(value.fields)
    elif isinstance(value, slice):
        yield from (value.start, value.stop, value.step)
    else:
        yield value


def _share(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
