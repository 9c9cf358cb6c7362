"""What ``tune`` leaves on a model: its forward, its settings, and the types it has learned.

One :class:`Tuned` object is both ``model.forward`` and ``model._rasna_tune``. It refers to
the model, so ``copy.deepcopy`` and ``pickle`` of the model take it along; a ``state_dict``
shows nothing of it.

In training it runs the compiler's fused graph with fake quantisation (training.py). In
eval it computes the integers that the hardware computes (integer.py): with the graph that
``rasna.compile`` froze as long as no weight or buffer has changed since, else with a
graph lowered from the present weights and the learned types.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from ..compile import floatgraph as fg
from ..compile.calibrate import choose_types, settle_types
from ..compile.capture import capture
from ..compile.check_quant import check_quant
from ..compile.lower import lower
from ..compile.passes import PASSES, drop_dropout, simplify
from ..compile.samples import mark_bytes, to_cpu_float32
from ..compile.settings import settings_of
from ..errors import RasnaTypeError, RasnaValueError
from ..graph import QuantGraph
from ..structure import nest
from .circular import keep_mode_where_it_wraps
from .integer import IntegerModel
from .observe import Observers
from .prune import apply_mask, mask_of, watch
from .settings import Settings
from .training import TrainingGraph

Shapes = tuple[tuple[int, ...], ...]

_TRAINING_PASSES = [p for p in PASSES if p is not drop_dropout]


def fingerprint(root: nn.Module) -> bytes:
    """A hash of the values of all parameters and buffers; sees changes through ``.data`` too."""
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in [*root.named_parameters(), *root.named_buffers()]:
        if not name.endswith("num_batches_tracked"):
            digest.update(name.encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.digest()


@contextlib.contextmanager
def undisturbed(model: nn.Module, training: bool) -> Iterator[None]:
    """Modes, buffers and random numbers are afterwards what they were; in eval if not training."""
    modes = [(m, m.training) for m in model.modules()]
    buffers = [(b, b.detach().clone()) for b in model.buffers()] if training else []
    try:
        for module, mode in modes:
            module.training = mode and training
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        for buffer, before in buffers:
            buffer.data.copy_(before)


# Tuned.run as a function that torch.compile leaves alone: it would trace for minutes. Made when
# the first model is tuned, because it imports TorchDynamo (as every optimiser does).
_untouched: list[Callable] = []


class Tuned:
    """The forward of a tuned model.

    Attributes
    ----------
    settings : Settings
    ab, wb, ib : int
        Bits of activations, weights and intermediate values, for the compiler.
    """

    def __init__(self, model: nn.Module, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self.ab, self.wb, self.ib = settings.ab, settings.wb, settings.ib
        self.observers = Observers(settings)
        self._frozen: tuple[bytes, QuantGraph] | None = None
        self._forget()

    def _forget(self) -> None:
        """Start with empty caches."""
        if not _untouched:
            _untouched.append(torch.compiler.disable(Tuned.run))
        self._prepared: set[Shapes] = set()
        self._training: dict[Shapes, TrainingGraph] = {}
        self._integer: tuple[bytes, Shapes, IntegerModel] | None = None

    def __getstate__(self) -> dict[str, Any]:
        caches = ("_prepared", "_training", "_integer")
        return {key: value for key, value in self.__dict__.items() if key not in caches}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # ---- forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _untouched[0](self, args, kwargs)

    def run(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What ``model(*args, **kwargs)`` computes."""
        inputs = self._positional(args, kwargs)
        if not self.model.training:
            return self._evaluate(inputs)
        graph = self._training_graph(inputs)
        self._frozen = None
        self.observers.start_step(graph.graph, self.model, inputs)
        return nest(graph.graph.structure, graph(*inputs), graph.graph.classes)

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        if kwargs:
            signature = inspect.signature(type(self.model).forward)
            args = signature.bind(self.model, *args, **kwargs).args[1:]
        for number, x in enumerate(args):
            if not isinstance(x, torch.Tensor):
                raise RasnaTypeError(
                    f"input {number} of a tuned model must be a tensor, "
                    f"{type(x).__name__} was given"
                )
            if x.dim() not in (2, 3, 4):
                raise RasnaValueError(
                    f"input {number} of a tuned model must be (batch, channels, height, width), "
                    f"(batch, channels, length) or (batch, features), its shape is "
                    f"{tuple(x.shape)}"
                )
        return args

    def _training_graph(self, inputs: Sequence[torch.Tensor]) -> TrainingGraph:
        shapes = tuple(tuple(x.shape[1:]) for x in inputs)
        if shapes not in self._training:
            graph = self._float_graph(inputs, training=True)
            self._training[shapes] = TrainingGraph(graph, self.model, self.observers)
        return self._training[shapes]

    def _float_graph(self, inputs: Sequence[torch.Tensor], training: bool) -> fg.FloatGraph:
        """The compiler's graph of the plain model; what it refuses is refused here."""
        self.prepare(inputs)
        samples = [x.detach()[:2].to("cpu", torch.float32) for x in inputs]
        plain = to_cpu_float32(self.model)
        with undisturbed(plain, training):
            graph = capture(plain, samples, training=training)
        return simplify(graph, _TRAINING_PASSES if training else PASSES)

    # ---- eval

    def _evaluate(self, inputs: Sequence[torch.Tensor]) -> Any:
        shapes = tuple(tuple(x.shape[1:]) for x in inputs)
        present = fingerprint(self.model)
        if self._integer is None or self._integer[:2] != (present, shapes):
            graph = self._quant_graph(inputs, present, shapes)
            self._integer = present, shapes, IntegerModel(graph)
        return self._integer[2](*inputs)

    def _quant_graph(
        self, inputs: Sequence[torch.Tensor], present: bytes, shapes: Shapes
    ) -> QuantGraph:
        """The frozen graph if it is still true, else one of the present weights."""
        if self._frozen is not None:
            frozen, quantised = self._frozen
            if frozen == present and shapes == tuple(tuple(p.shape) for p in quantised.inputs):
                return quantised
        graph = self._float_graph(inputs, training=False)
        plain = to_cpu_float32(self.model)
        types = self.observers.types
        stored = [n.name for n in graph.nodes.values() if not isinstance(n.op, fg.Host)]
        if any(name not in types for name in stored):
            types = self._observe(graph, plain, inputs)
        types = settle_types(graph, dict(types))
        with undisturbed(plain, training=False):
            return check_quant(lower(graph, plain, types, settings_of(self.model)))

    def _observe(self, graph: fg.FloatGraph, plain: nn.Module, inputs) -> dict:
        """Types of tensors that training has not seen, from this batch; known ones are kept."""
        samples = [mark_bytes(x.detach().to("cpu", torch.float32), x.dtype) for x in inputs]
        with undisturbed(plain, training=False):
            types, _ = choose_types(graph, plain, samples, self.ab)
        types.update(self.observers.types)
        self.observers.types.update(types)
        return types

    # ---- what the compiler calls

    def prepare(self, inputs: Sequence[torch.Tensor]) -> None:
        """Bring the layers into the state that is compiled: masked, padding modes settled.

        inputs: NCHW batches; their shapes tell where circular padding would wrap too often.
        """
        for layer in self.model.modules():
            if mask_of(layer) is not None:
                watch(layer)
                apply_mask(layer)
        shapes = tuple(tuple(x.shape[1:]) for x in inputs)
        if self.settings.chpad and shapes not in self._prepared:
            like = next(self.model.parameters())
            few = [x.detach()[:2].to(like.device, like.dtype) for x in inputs]

            def run() -> None:
                with contextlib.suppress(Exception):  # capture says better what is wrong
                    type(self.model).forward(self.model, *few)

            with undisturbed(self.model, training=False):
                if keep_mode_where_it_wraps(self.model, run):
                    self._training.clear()  # graphs of other shapes have the old mode
            self._prepared.add(shapes)

    def freeze(self, graph: QuantGraph) -> None:
        """Take over what ``rasna.compile`` made: eval computes it until a value changes."""
        self._frozen = fingerprint(self.model), graph
        self._integer = None
        self.observers.types.update({t.name: t.type for t in graph.tensors.values()})
