"""Run a float graph with torch, node by node: for calibration, checks and training.

Arrays are (batch, C, H, W) or (batch, F) tensors. ``observe`` may replace the value of any
node, which is how fake quantisation is put into a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from . import curves
from . import floatgraph as fg

Observe = Callable[[fg.Node, torch.Tensor], torch.Tensor]


def per_channel(
    root: torch.nn.Module, steps: Sequence[fg.Step], channels: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The steps as y = a*x + b: float64 tensors a and b of shape (channels,), differentiable."""
    device = _device(root, steps)
    a = torch.ones(channels, dtype=torch.float64, device=device)
    b = torch.zeros(channels, dtype=torch.float64, device=device)
    for step in steps:
        if isinstance(step, fg.BatchNorm):
            scale, offset = _batch_norm(root, step)
        else:
            scale, offset = _arithmetic(root, step)
        a, b = a * scale, b * scale + offset
    return a, b


def _device(root: torch.nn.Module, steps: Sequence[fg.Step]) -> torch.device | None:
    for path in fg.parameters(tuple(steps)):
        return fg.fetch(root, fg.Param(path)).device
    return None


def _batch_norm(root: torch.nn.Module, step: fg.BatchNorm) -> tuple[torch.Tensor, torch.Tensor]:
    scale = (fg.fetch(root, step.var).double() + step.eps).rsqrt()
    if step.weight is not None:
        scale = scale * fg.fetch(root, step.weight).double()
    offset = -fg.fetch(root, step.mean).double() * scale
    if step.bias is not None:
        offset = offset + fg.fetch(root, step.bias).double()
    return scale, offset


def _arithmetic(root: torch.nn.Module, step: fg.Arithmetic) -> tuple:
    value = fg.fetch(root, step.operand)
    if isinstance(value, torch.Tensor):
        value = value.double().reshape(-1)
    return {
        "add": lambda: (1.0, value),
        "sub": lambda: (1.0, -value),
        "rsub": lambda: (-1.0, value),
        "mul": lambda: (value, 0.0),
        "div": lambda: (1.0 / value, 0.0),
    }[step.kind]()


Layer = fg.Conv | fg.ConvTranspose | fg.Linear


def layer_weight(root: torch.nn.Module, op: Layer) -> torch.Tensor:
    """The weight of a layer, one row per output channel; see :func:`in_rows`."""
    return in_rows(fg.fetch(root, op.weight), op)


def in_rows(weight: torch.Tensor, op: Layer) -> torch.Tensor:
    """What has the shape of a layer's weight, as (OC, IC/groups, KH, KW) or (OC, features).

    That of a Conv1d, (OC, IC/groups, K), has KH = 1.
    """
    if isinstance(op, fg.Linear):
        return weight
    weight = weight.unsqueeze(2) if weight.dim() == 3 else weight
    return swapped(weight, op.groups) if isinstance(op, fg.ConvTranspose) else weight


def swapped(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """(IC, OC/groups, KH, KW) as (OC, IC/groups, KH, KW), and back."""
    rows, per_group, kh, kw = weight.shape
    parts = weight.reshape(groups, rows // groups, per_group, kh, kw).transpose(1, 2)
    return parts.reshape(groups * per_group, rows // groups, kh, kw)


def fold_before(
    root: torch.nn.Module, op: Layer, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """V, s and t with W . before(x) = s * (V . x) + t: the layer's W with the steps before it.

    weight: W, of any dtype. V: W itself if all channels are scaled alike, s: that scale, else 1;
    t: (OC,). Scaling one by one is part of the weights, which are rounded with it.
    """
    one = weight.new_ones(())
    if not op.before:
        return weight, one, weight.new_zeros(len(weight))
    groups = 1 if isinstance(op, fg.Linear) else op.groups
    channels = weight.shape[1] * groups
    a, b = (p.to(weight.dtype) for p in per_channel(root, op.before, channels))
    rows = len(weight) // groups
    shape = (len(weight), -1, *[1] * (weight.dim() - 2))
    a_rows, b_rows = (p.view(groups, -1).repeat_interleave(rows, 0).view(shape) for p in (a, b))
    offset = (weight * b_rows).flatten(1).sum(1)
    if bool((a == a[0]).all()):
        return weight, a[0], offset
    return weight * a_rows, one, offset


def layer_parameters(
    root: torch.nn.Module, op: Layer
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """W, a and b of a Conv or Linear with its steps: y = a * (W . x) + b per output channel.

    float64; W: the layer's own weight (with different scales of its input's channels, if it
    has such steps before it); a, b: (OC,), the layer's bias is in b.
    """
    weight, scale, offset = fold_before(root, op, layer_weight(root, op).double())
    a, b = per_channel(root, op.steps, weight.shape[0])
    if op.bias is not None:
        offset = offset + fg.fetch(root, op.bias).double()
    return weight, a * scale, b + a * offset


def folded_parameters(
    root: torch.nn.Module, op: Layer
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight a*W and bias b of a Conv or Linear with its steps folded in, in float64."""
    weight, a, b = layer_parameters(root, op)
    return weight * a.view(-1, *[1] * (weight.dim() - 1)), b


def convolve(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    op: fg.Conv | fg.ConvTranspose,
) -> torch.Tensor:
    """The convolution of ``op`` with the given parameters (rows), padding included."""
    if isinstance(op, fg.ConvTranspose):
        return F.conv_transpose2d(
            x, swapped(weight, op.groups), bias, op.stride, op.padding, op.output_padding,
            op.groups, op.dilation,
        )  # fmt: skip
    pad = op.padding
    edges = (pad.left, pad.right, pad.top, pad.bottom)
    if any(edges):
        mode = "circular" if op.padding_mode == "circular" else "constant"
        x = F.pad(x, edges, mode=mode)
    return F.conv2d(x, weight, bias, op.stride, 0, op.dilation, op.groups)


def average(x: torch.Tensor, op: fg.AvgPool) -> torch.Tensor:
    """Average pooling as two matrix products: rows (OH x H) and columns (OW x W)."""
    rows = _window_matrix(op.rows, op.row_divisors, x.shape[2], x)
    columns = _window_matrix(op.columns, op.column_divisors, x.shape[3], x)
    return torch.matmul(torch.matmul(rows, x), columns.t())


def _window_matrix(windows, divisors, num_pixels: int, like: torch.Tensor) -> torch.Tensor:
    matrix = like.new_zeros(len(windows), num_pixels)
    for index, ((first, limit), divisor) in enumerate(zip(windows, divisors, strict=True)):
        matrix[index, first:limit] = 1.0 / divisor
    return matrix


def fetch_number(root: torch.nn.Module, value: float | fg.Ref) -> float:
    """A number, or the one element of what a reference means."""
    return float(fg.fetch(root, value))


def select(x: torch.Tensor, op: fg.Select) -> torch.Tensor:
    """Channels of x, (batch, C, H, W) or (batch, F), in the places that ``op`` gives them."""
    channels = torch.as_tensor(op.channels, device=x.device)
    picked = x.index_select(1, channels.flatten())
    count, rows, columns = channels.shape
    if (rows, columns) == (1, 1):
        return picked
    height, width = x.shape[2:]
    picked = picked.view(-1, count, rows, columns, height, width).permute(0, 1, 4, 2, 5, 3)
    return picked.reshape(-1, count, height * rows, width * columns)


def gather(x: torch.Tensor, op: fg.Gather) -> torch.Tensor:
    """Pixels of x, (batch, C, H, W), in the places that ``op`` gives them."""
    for axis, numbers in enumerate((op.channels, op.rows, op.columns), start=1):
        index = torch.as_tensor(numbers, device=x.device)
        x = x.index_select(axis, index.clamp_min(0))
        if bool((index < 0).any()):
            x = x.index_fill(axis, (index < 0).nonzero().flatten(), op.fill)
    return x


def leaky(root: torch.nn.Module, x: torch.Tensor, op: fg.Leaky) -> torch.Tensor:
    """Leaky ReLU, differentiable in the slope."""
    slope = fg.fetch(root, op.slope)
    return torch.where(x >= 0, x, x * slope)


HOST: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": lambda x, axis: torch.softmax(x, axis),
    "log_softmax": lambda x, axis: torch.log_softmax(x, axis),
    "argmax": lambda x, axis, keepdim: torch.argmax(x, axis, keepdim),
    "argmin": lambda x, axis, keepdim: torch.argmin(x, axis, keepdim),
    "normalize": lambda x, axis, eps: F.normalize(x, 2.0, axis, eps),
    "scale": lambda x, factor, offset: x * factor + offset,
    "reshape": lambda x, shape: x.reshape(len(x), *shape),
    "take": lambda x, channels: x[:, list(channels)],
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "softplus": F.softplus,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "abs": torch.abs,
}
"""The kinds of ``golden/host.py`` in PyTorch, for training and for checks."""


def run_node(
    root: torch.nn.Module, node: fg.Node, inputs: Sequence[torch.Tensor]
) -> torch.Tensor:
    """The output of one node. inputs: batch first, in the order of ``node.inputs``."""
    op, x = node.op, inputs[0]
    if isinstance(op, (fg.Conv, fg.ConvTranspose)):
        weight, bias = (p.to(x.dtype) for p in folded_parameters(root, op))
        y = convolve(x, weight, bias, op)
    elif isinstance(op, fg.Linear):
        weight, bias = (p.to(x.dtype) for p in folded_parameters(root, op))
        y = F.linear(x, weight, bias)
    elif isinstance(op, fg.Affine):
        a, b = per_channel(root, op.steps, x.shape[1])
        shape = (1, -1, *[1] * (x.dim() - 2))
        y = (a.view(shape) * x + b.view(shape)).to(x.dtype)
    elif isinstance(op, fg.Sum):
        y = op.coefficients[0] * x
        for coefficient, value in zip(op.coefficients[1:], inputs[1:], strict=True):
            y = y + coefficient * value
    elif isinstance(op, fg.MaxPool):
        y = F.max_pool2d(x, op.kernel, op.stride, op.padding, op.dilation, op.ceil_mode)
    elif isinstance(op, fg.AvgPool):
        y = average(x, op)
    elif isinstance(op, fg.Concat):
        y = torch.cat(list(inputs), op.axis)
    elif isinstance(op, fg.Select):
        y = select(x, op)
    elif isinstance(op, fg.Gather):
        y = gather(x, op)
    elif isinstance(op, fg.Unshuffle):
        y = F.pixel_unshuffle(x, op.factor)
    elif isinstance(op, fg.Leaky):
        y = leaky(root, x, op)
    elif isinstance(op, fg.Curve):
        y = curves.apply(op.function, x)
    elif isinstance(op, fg.Product):
        y = x * inputs[1]
    elif isinstance(op, fg.Host):
        y = HOST[op.kind](x, **dict(op.attributes))
    elif isinstance(op, fg.Reshape):
        y = x.reshape(x.shape[0], *node.shape)
    elif isinstance(op, (fg.Clamp, fg.Dropout)):
        y = x
    else:
        raise TypeError(f"{node.where}: {type(op).__name__} cannot be executed")
    clamp = getattr(op, "clamp", fg.UNBOUNDED)
    return y if clamp == fg.UNBOUNDED else torch.clamp(y, *clamp)


def run(
    graph: fg.FloatGraph,
    root: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    observe: Observe | None = None,
) -> list[torch.Tensor]:
    """The outputs of the graph, values being freed after their last use.

    Parameters
    ----------
    inputs : one (batch, C, H, W) or (batch, F) tensor per positional input.
    observe : called with every node and its value; what it returns is used instead.
    """
    last_use = {name: node.name for node in graph.nodes.values() for name in node.inputs}
    values: dict[str, torch.Tensor] = {}
    for node in graph.nodes.values():
        if isinstance(node.op, fg.Input):
            value = inputs[node.op.index]
        else:
            value = run_node(root, node, [values[name] for name in node.inputs])
        values[node.name] = value if observe is None else observe(node, value)
        for name in set(node.inputs):
            if last_use[name] == node.name and name not in graph.outputs:
                del values[name]
    return [values[name] for name in graph.outputs]
