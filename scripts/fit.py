"""Prints how the named networks map to a target: mapping, passes, cycles and bytes per layer.

    python scripts/fit.py [--target pynq-z2] [--sparsity 0.8] [--net NAME] [--summary]

The networks have random weights of the given sparsity (first, depthwise and linear layers
stay dense, as ``rasna.tune(strategy="auto")`` does); no torch is needed. Cycles are the
compiler's estimate, not a measurement.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from rasna.compile.backend.build import build_image  # noqa: E402
from rasna.graph import (  # noqa: E402
    AvgPool,
    Conv,
    FixedPoint,
    MaxPool,
    Padding,
    Port,
    QuantGraph,
    Requant,
    Sum,
    Tensor,
)
from rasna.targets import TARGETS, get_target  # noqa: E402


class Net:
    """Builds a quantised graph layer by layer; ``circular`` pads all convolutions so."""

    def __init__(self, shape, sparsity: float, circular: bool = False) -> None:
        self.rng = np.random.default_rng(0)
        self.sparsity, self.circular = sparsity, circular
        self.graph = QuantGraph({}, [], [], [])
        self.first = True
        self.at = self._tensor(shape, signed=True)
        self.graph.inputs.append(Port("input", self.at, tuple(shape)))
        self.macs = 0
        self.useful_macs = 0

    def _tensor(self, shape, signed=False) -> str:
        name = f"t{len(self.graph.tensors)}"
        self.graph.tensors[name] = Tensor(name, tuple(shape), FixedPoint(8, 5, signed))
        return name

    def _requant(self, n: int) -> Requant:
        ones = np.ones(n, np.int32)
        return Requant(2 * ones, ones, 7 * ones, 0, 255)

    def shape(self, name=None):
        return self.graph.tensors[name or self.at].shape

    def conv(self, oc, k, s=1, groups=1, source=None, pad=None):
        source = source or self.at
        c, h, w = self.shape(source)
        pad = k // 2 if pad is None else pad
        oh, ow = ((n + 2 * pad - k) // s + 1 for n in (h, w))
        weight = self.rng.integers(1, 128, (oc, c // groups, k, k)).astype(np.int8)
        if not self.first and groups == 1:
            weight[self.rng.random(weight.shape) < self.sparsity] = 0
        self.first = False
        return self._add_conv(source, weight, (s, s), groups, Padding(pad, pad, pad, pad), (oh, ow))

    def linear(self, oc):
        c, h, w = self.shape()
        weight = self.rng.integers(1, 128, (oc, c, h, w)).astype(np.int8)
        return self._add_conv(self.at, weight, (1, 1), 1, Padding(), (1, 1))

    def _add_conv(self, source, weight, stride, groups, padding, hw):
        oc = weight.shape[0]
        out = self._tensor((oc, *hw))
        mode = "circular" if self.circular and padding.top else "zeros"
        self.macs += weight.size * hw[0] * hw[1]
        self.useful_macs += np.count_nonzero(weight) * hw[0] * hw[1]
        number = len(self.graph.ops)
        self.graph.ops.append(Conv(
            f"conv{number}", [source], out, "", weight, np.zeros(oc, np.int32),
            self._requant(oc), stride, (1, 1), groups, padding, mode,
        ))
        self.at = out
        return out

    def add(self, a, b):
        out = self._tensor(self.shape(a))
        n = self.shape(a)[0]
        self.graph.ops.append(
            Sum(f"add{len(self.graph.ops)}", [a, b], out, "", [1, 1], np.zeros(n, np.int32),
                self._requant(n))
        )
        self.at = out

    def pool(self, k, s, pad=0):
        c, h, w = self.shape()
        hw = tuple((n + 2 * pad - k) // s + 1 for n in (h, w))
        out = self._tensor((c, *hw))
        self.graph.ops.append(MaxPool(
            f"pool{len(self.graph.ops)}", [self.at], out, "", (k, k), (s, s), (1, 1),
            Padding(pad, pad, pad, pad), hw, 0, 255,
        ))
        self.at = out

    def global_average(self):
        c, h, w = self.shape()
        out = self._tensor((c, 1, 1))
        self.graph.ops.append(AvgPool(
            f"avg{len(self.graph.ops)}", [self.at], out, "", [(0, h)], [(0, w)],
            self._requant(1), np.zeros((1, 1), int),
        ))
        self.at = out

    def done(self) -> Net:
        self.graph.outputs = [Port("output", self.at, self.shape())]
        return self


def _basic_block(net: Net, oc: int, s: int) -> None:
    skip = net.at
    net.conv(oc, 3, s)
    main = net.conv(oc, 3)
    if s > 1 or net.shape(skip)[0] != oc:
        skip = net.conv(oc, 1, s, source=skip, pad=0)
    net.add(main, skip)


def resnet20(sp, circular=False):
    net = Net((3, 32, 32), sp, circular)
    net.conv(16, 3)
    for stage, oc in enumerate((16, 32, 64)):
        for block in range(3):
            _basic_block(net, oc, 2 if stage and not block else 1)
    net.global_average()
    net.linear(10)
    return net.done()


def resnet18(sp, size=32, circular=False):
    net = Net((3, size, size), sp, circular)
    if size == 224:
        net.conv(64, 7, 2)
        net.pool(3, 2, 1)
    else:
        net.conv(64, 3)
    for stage, oc in enumerate((64, 128, 256, 512)):
        for block in range(2):
            _basic_block(net, oc, 2 if stage and not block else 1)
    net.global_average()
    net.linear(1000 if size == 224 else 10)
    return net.done()


def mobilenet(sp, size=224):
    net = Net((3, size, size), sp)
    net.conv(32, 3, 2)
    for oc, s in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                  *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        net.conv(net.shape()[0], 3, s, groups=net.shape()[0])
        net.conv(oc, 1)
    net.global_average()
    net.linear(1000)
    return net.done()


def vgg16(sp):
    net = Net((3, 32, 32), sp)
    for v in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if v:
            net.conv(v, 3)
        else:
            net.pool(2, 2)
    net.linear(512)
    net.linear(10)
    return net.done()


def ds_cnn(sp):
    net = Net((1, 49, 10), sp)
    net.conv(64, 5, 2)
    for _ in range(4):
        net.conv(64, 3, groups=64)
        net.conv(64, 1)
    net.global_average()
    net.linear(12)
    return net.done()


NETS = {
    "resnet20": resnet20,
    "resnet20-circular": lambda sp: resnet20(sp, True),
    "resnet18-32": resnet18,
    "resnet18-224": lambda sp: resnet18(sp, 224),
    "mobilenetv1-224": mobilenet,
    "vgg16-32": vgg16,
    "ds-cnn": ds_cnn,
}


def show_layers(image) -> None:
    print(f"  {'layer':8} {'output':>14} {'non-zeros':>9} {'cycles':>9} {'bytes':>9}  mapping")
    for layer in image.layers:
        shape = "x".join(map(str, layer["output_shape"]))
        print(f"  {layer['name']:8} {shape:>14} {layer['nonzeros']:9} {layer['cycles']:9} "
              f"{layer['bytes']:9}  {layer['mapping']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="pynq-z2", choices=list(TARGETS))
    parser.add_argument("--sparsity", type=float, default=0.8)
    parser.add_argument("--net", choices=list(NETS), action="append")
    parser.add_argument("--summary", action="store_true", help="totals only")
    args = parser.parse_args()
    target = get_target(args.target)
    for name in args.net or NETS:
        net = NETS[name](args.sparsity)
        start = time.perf_counter()
        image = build_image(net.graph, target)
        seconds = time.perf_counter() - start
        useful = net.useful_macs / (image.cycles * target.macs_per_cycle)
        print(
            f"{name} on {target.name}, sparsity {args.sparsity}: {image.cycles} cycles estimated, "
            f"{useful:.0%} of the MACs at work, {len(image.words) * 8 / 1e6:.2f} MB program, "
            f"built in {seconds:.1f} s"
        )
        if not args.summary:
            show_layers(image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
