"""Helpers of the compiler's tests: compile to the quantised graph, evaluate it, compare."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import fx, nn

from rasna.compile.capture import capture
from rasna.compile.floatgraph import FloatGraph
from rasna.compile.passes import simplify
from rasna.compile.pipeline import flatten_outputs, quantize_model
from rasna.compile.settings import Settings
from rasna.golden import layers
from rasna.golden.host import run_steps
from rasna.graph import QuantGraph

_LAYERS = (nn.Conv2d, nn.Conv1d, nn.ConvTranspose2d, nn.ConvTranspose1d, nn.Linear)


def needs_traced_sizes_in_functions() -> None:
    """Skip where torch.reshape(x, (x.shape[0], 60)) cannot be traced by PyTorch itself."""
    try:
        x = fx.Proxy(fx.Graph().placeholder("x"))
        torch.reshape(x, (x, 60))
    except TypeError:
        pytest.skip(f"PyTorch {torch.__version__} takes no traced sizes in its functions")


class Net(nn.Module):
    """A module whose forward is the given function of (self, *inputs); kwargs are children."""

    def __init__(self, function, **children) -> None:
        super().__init__()
        for name, child in children.items():
            if isinstance(child, torch.Tensor) and not isinstance(child, nn.Parameter):
                self.register_buffer(name, child)
            else:
                setattr(self, name, child)
        self.function = function

    def forward(self, x):
        return self.function(self, x)


class Net2(Net):
    """The same with two inputs."""

    def forward(self, x, y):
        return self.function(self, x, y)


def settle(model: nn.Module, seed: int = 0) -> nn.Module:
    """Random weights and BatchNorm statistics from a seed; in eval."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator) / 2)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
            if module.affine:
                with torch.no_grad():
                    module.weight.copy_(torch.randn(module.num_features, generator=generator))
                    module.bias.copy_(torch.randn(module.num_features, generator=generator) / 2)
        elif isinstance(module, _LAYERS):
            with torch.no_grad():
                for parameter in module.parameters(recurse=False):
                    scale = max(1, parameter[0].numel()) ** -0.5
                    values = torch.randn(parameter.shape, generator=generator)
                    parameter.copy_(values * scale)
    return model.eval()


def sample(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normal random numbers from a seed; NCHW."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def compiled(model: nn.Module, *samples: torch.Tensor, **settings: int) -> QuantGraph:
    """The quantised graph of a model for NCHW samples."""
    return quantize_model(model, list(samples), Settings(**settings)).quant_graph


def simplified(model: nn.Module, *samples: torch.Tensor) -> FloatGraph:
    """The float graph after all passes."""
    return simplify(capture(model, list(samples)))


def evaluate(graph: QuantGraph, *samples: torch.Tensor) -> list[np.ndarray]:
    """Real outputs (batch first) of the golden layer form, as the runtime would give them."""
    rows = []
    for row in range(len(samples[0])):
        inputs = [
            layers.quantize(x[row].numpy(), graph.tensors[port.tensor].type)
            for x, port in zip(samples, graph.inputs, strict=True)
        ]
        values = layers.evaluate(graph, inputs)
        outputs = {
            port.name: layers.dequantize(
                values[port.tensor], graph.tensors[port.tensor].type
            ).reshape(1, *port.shape)
            for port in graph.outputs
        }
        found = run_steps(graph.host_steps, graph.results, outputs)
        rows.append([array[0] for array in found])
    return [np.stack(output) for output in zip(*rows, strict=True)]


def integers(graph: QuantGraph, sample: torch.Tensor) -> np.ndarray:
    """The first row of a batch as integers of the graph's only input, (C, H, W)."""
    tensor = graph.tensors[graph.inputs[0].tensor]
    return layers.quantize(sample[0].numpy(), tensor.type).reshape(tensor.shape)


def snr_db(want: np.ndarray, got: np.ndarray) -> float:
    """Signal to noise ratio of ``got`` in decibels; 99 where they are equal."""
    assert want.shape == got.shape, (want.shape, got.shape)
    noise = float(((got - want) ** 2).sum())
    signal = float((want.astype(np.float64) ** 2).sum())
    return 99.0 if noise == 0 else 10 * np.log10(max(signal, 1e-300) / noise)


def check(model: nn.Module, *samples: torch.Tensor, least_db: float = 30, **settings: int):
    """Compile, evaluate and compare with PyTorch; returns the quantised graph.

    8-bit types of one layer give 35 to 45 dB; a wrong pixel or sign gives less than 20.
    """
    with torch.no_grad():
        want = flatten_outputs(model(*[x.clone() for x in samples]))
    graph = compiled(model, *samples, **settings)
    got = evaluate(graph, *samples)
    for name, w, g in zip(graph.results, want, got, strict=True):
        ratio = snr_db(w.numpy(), g)
        assert ratio >= least_db, f"output {name}: {ratio:.1f} dB, at least {least_db}"
    return graph
