"""The dataflow kernel: processes, FIFOs, AXI masters and the deadlock detector in one module."""

# ruff: noqa: E501 (text of generated code)
from __future__ import annotations

from dataclasses import dataclass

from .dataflow import Top
from .emit import ProcessEmitter
from .errors import HlsError
from .verilog import clean, connect, vector

_READ_SIGNALS = ("rq_valid", "rq_ready", "rq_addr", "rq_len", "rd_valid", "rd_ready", "rd_data")
_WRITE_SIGNALS = (
    "wq_valid",
    "wq_ready",
    "wq_addr",
    "wq_len",
    "wd_valid",
    "wd_ready",
    "wd_data",
    "wb_valid",
    "wb_ready",
)
_SIGNALS_OF = {
    "mrq": ("rq_valid", "rq_addr", "rq_len"),
    "mrd": ("rd_ready",),
    "mwq": ("wq_valid", "wq_addr", "wq_len"),
    "mwr": ("wd_valid", "wd_data"),
    "mwb": ("wb_ready",),
}


def axi_ports(prefix: str, bits: int) -> list[tuple[str, int, str]]:
    """(direction, width, name) of a full AXI4 master port."""
    out = [
        ("output", 1, "awid"), ("output", 64, "awaddr"), ("output", 8, "awlen"), ("output", 3, "awsize"),
        ("output", 2, "awburst"), ("output", 1, "awlock"), ("output", 4, "awcache"), ("output", 3, "awprot"),
        ("output", 4, "awqos"), ("output", 1, "awvalid"), ("input", 1, "awready"),
        ("output", bits, "wdata"), ("output", bits // 8, "wstrb"), ("output", 1, "wlast"), ("output", 1, "wvalid"),
        ("input", 1, "wready"),
        ("input", 1, "bid"), ("input", 2, "bresp"), ("input", 1, "bvalid"), ("output", 1, "bready"),
        ("output", 1, "arid"), ("output", 64, "araddr"), ("output", 8, "arlen"), ("output", 3, "arsize"),
        ("output", 2, "arburst"), ("output", 1, "arlock"), ("output", 4, "arcache"), ("output", 3, "arprot"),
        ("output", 4, "arqos"), ("output", 1, "arvalid"), ("input", 1, "arready"),
        ("input", 1, "rid"), ("input", bits, "rdata"), ("input", 2, "rresp"), ("input", 1, "rlast"),
        ("input", 1, "rvalid"), ("output", 1, "rready"),
    ]  # fmt: skip
    return [(direction, width, f"{prefix}_{name}") for direction, width, name in out]


_CONSTANTS = {
    "awid": "1'b0",
    "awlock": "1'b0",
    "awcache": "4'b0011",
    "awprot": "3'b000",
    "awqos": "4'b0000",
}


@dataclass
class Kernel:
    """Text of the kernel module, and what the wrapper needs to know."""

    text: str
    scalars: list[tuple[str, int]]
    bases: list[str]
    outputs: list[tuple[str, int]]
    axi: list[tuple[str, int]]  # (AXI port name, data bits)


class KernelBuilder:
    """Connects compiled processes as the dataflow function says."""

    def __init__(self, top: Top, emitters: dict[str, ProcessEmitter], deadlock_cycles: int):
        self.top, self.emitters, self.deadlock_cycles = top, emitters, deadlock_cycles
        self.module = f"{top.name}_kernel"
        self.wires: list[str] = []
        self.instances: list[str] = []
        self.ports = ["input wire clk", "input wire rst", "input wire start", "output wire done"]
        self.scalars: list[tuple[str, int]] = []
        self.outputs: list[tuple[str, int]] = []
        self.axi: dict[str, dict] = {}
        self.used_by: dict[str, str] = {}

    def build(self) -> Kernel:
        kinds = dict(self.top.args)
        self.scalars = [(n, int(k[1:])) for n, k in self.top.args if k != "ptr"]
        self.ports += [f"input wire {vector(w)}arg_{clean(n)}" for n, w in self.scalars]
        for call in self.top.calls:
            self.process(call, kinds)
        for stream in self.top.streams.values():
            self.fifo(stream)
        for name, port in self.axi.items():
            self.master(name, port)
        self.status()
        ports = ",\n  ".join(self.ports)
        body = "\n".join("  " + line for line in [*self.wires, *self.instances])
        text = f"module {self.module} (\n  {ports}\n);\n{body}\nendmodule\n"
        axi = [(self.top.bundles[n], p["bits"]) for n, p in self.axi.items()]
        return Kernel(text, self.scalars, list(self.axi), self.outputs, axi)

    # ------------------------------------------------------------------ processes
    def process(self, call, kinds) -> None:
        emitter = self.emitters[call.process]
        label = emitter.function.label
        signals = {"clk": "clk", "rst": "rst", "start": "start", "done": f"done_{label}"}
        signals |= {"stalled": f"stalled_{label}", "deadlock": "deadlock"}
        self.wires += [f"wire done_{label}, stalled_{label};"]
        for index, (arg, actual) in enumerate(
            zip(emitter.function.args, call.actuals, strict=False)
        ):
            if arg.width:
                literal = actual.lstrip("-").isdigit() or actual in ("true", "false")
                value = {"true": 1, "false": 0}.get(actual, actual)
                mask = (1 << arg.width) - 1
                text = f"{arg.width}'d{int(value) & mask}" if literal else f"arg_{clean(actual)}"
                signals[f"arg_{clean(arg.name)}"] = text
            elif actual in self.top.streams:
                self.stream_end(emitter, index, self.top.streams[actual], signals, call)
            elif actual in kinds:
                self.argument(emitter, index, actual, signals, call)
            else:
                raise HlsError(
                    call.location,
                    f"argument {index + 1} of {label} is neither a stream nor an argument of the top",
                )
        self.instances.append(connect(emitter.module_name, f"u_{label}", {}, signals))

    def stream_end(self, emitter, index: int, stream, signals, call) -> None:
        name, label = emitter.argument(index), emitter.function.label
        ops = [op for port, op in emitter.channels if port == index]
        if len(ops) != 1:
            use = "never used" if not ops else "both read and written"
            raise HlsError(call.location, f"stream '{stream.name}' is {use} by process {label}")
        width = emitter.channels[index, ops[0]]["widths"][0]
        end = "reader" if ops[0] == "rd" else "writer"
        if getattr(stream, end):
            raise HlsError(
                call.location,
                f"stream '{stream.name}' has two {end}s ({getattr(stream, end)} and {label})",
            )
        setattr(stream, end, label)
        stream.width = width
        letter = "r" if end == "reader" else "w"
        for part in ("valid", "ready", "data"):
            signals[f"{name}_{letter}{part}"] = f"{clean(stream.name)}_{letter}{part}"

    def argument(self, emitter, index: int, actual: str, signals, call) -> None:
        name, label = emitter.argument(index), emitter.function.label
        ops = [op for port, op in emitter.channels if port == index]
        if index not in emitter.outputs and not ops:
            raise HlsError(call.location, f"argument '{actual}' is never used by process {label}")
        if actual in self.used_by:
            raise HlsError(
                call.location,
                f"argument '{actual}' is used by two processes ({self.used_by[actual]} and {label})",
            )
        self.used_by[actual] = label
        if index in emitter.outputs:
            width = emitter.outputs[index]
            self.outputs.append((actual, width))
            self.ports.append(f"output wire {vector(width)}out_{clean(actual)}")
            signals[f"out_{name}"] = f"out_{clean(actual)}"
            return
        if actual not in self.top.bundles:
            raise HlsError(
                call.location,
                f"argument '{actual}' needs #pragma HLS interface m_axi port={actual} bundle=<name>",
            )
        widths = {
            w for op in ops if op in ("mrd", "mwr") for w in emitter.channels[index, op]["widths"]
        }
        bits = next(iter(widths), 64)
        if bits not in (8, 16, 32, 64, 128, 256, 512, 1024):
            raise HlsError(
                call.location, f"argument '{actual}': an AXI port cannot be {bits} bits wide"
            )
        self.axi[actual] = {"bits": bits, "ops": ops}
        for op in ops:
            wanted = _READ_SIGNALS if op in ("mrq", "mrd") else _WRITE_SIGNALS
            group = {"mrq": "rq", "mrd": "rd", "mwq": "wq", "mwr": "wd", "mwb": "wb"}[op]
            for signal in wanted:
                if signal.startswith(group):
                    signals[f"{name}_{signal}"] = f"{clean(actual)}_{signal}"

    # ------------------------------------------------------------------ streams and ports
    def fifo(self, stream) -> None:
        if not (stream.writer and stream.reader):
            missing = "reader" if stream.writer else "writer"
            raise HlsError(None, f"{self.top.name}: stream '{stream.name}' has no {missing}")
        name = clean(stream.name)
        for letter in "wr":
            self.wires += [
                f"wire {name}_{letter}valid, {name}_{letter}ready;",
                f"wire {vector(stream.width)}{name}_{letter}data;",
            ]
        ports = {"clk": "clk", "rst": "rst"}
        for letter, side in (("w", "write"), ("r", "read")):
            ports |= {
                f"{side}_{part}": f"{name}_{letter}{part}" for part in ("valid", "ready", "data")
            }
        self.instances.append(
            connect("hls_fifo", f"u_{name}", {"WIDTH": stream.width, "DEPTH": stream.depth}, ports)
        )

    def master(self, name: str, port: dict) -> None:
        bits, axi, short = port["bits"], f"m_axi_{self.top.bundles[name]}", clean(name)
        driven: set[str] = set()
        self.ports.append(f"input wire [63:0] base_{short}")
        for direction, width, signal in axi_ports(axi, bits):
            self.ports.append(f"{direction} wire {vector(width)}{signal}")
        for side, signals, ops in (
            ("read", _READ_SIGNALS, ("mrq", "mrd")),
            ("write", _WRITE_SIGNALS, ("mwq", "mwr", "mwb")),
        ):
            self.wires.append(f"wire [1:0] {short}_{side}_error;")
            self.wires.append(f"wire {short}_{side}_idle;")
            if not any(op in port["ops"] for op in ops):
                self.instances += [
                    f"assign {short}_{side}_error = 2'b00;",
                    f"assign {short}_{side}_idle = 1'b1;",
                ]
                continue
            self.declare(short, signals, bits, port["ops"])
            connections = {"clk": "clk", "rst": "rst", "clear": "clear", "base": f"base_{short}"}
            connections |= {"error": f"{short}_{side}_error", "idle": f"{short}_{side}_idle"}
            connections |= {s: f"{short}_{s}" for s in signals}
            for direction, _, signal in axi_ports(axi, bits):
                part = signal.removeprefix(axi + "_")
                ours = (
                    part[:2] == "ar" or part[0] == "r"
                    if side == "read"
                    else part[:2] == "aw" or part[0] in "wb"
                )
                plain = part.replace("ar", "aw") if part.startswith("ar") else part
                if ours and plain not in _CONSTANTS and part not in ("rid", "bid"):
                    connections[f"m_axi_{part}"] = signal
                    if direction == "output":
                        driven.add(signal)
            self.instances.append(
                connect(f"hls_axi_{side}", f"u_{short}_{side}", {"DATA_BITS": bits}, connections)
            )
        for direction, width, signal in axi_ports(axi, bits):
            if direction == "output" and signal not in driven:
                part = signal.removeprefix(axi + "_").replace("ar", "aw", 1)
                constant = _CONSTANTS.get(part, f"{width}'d0")
                self.instances.append(f"assign {signal} = {constant};")

    def declare(self, short: str, signals, bits: int, ops) -> None:
        """Wires between process and master; what the process does not use is idle."""
        used = {s for op in ops for s in _SIGNALS_OF[op]}
        for signal in signals:
            width = (
                bits if signal.endswith("data") else 32 if signal.endswith(("addr", "len")) else 1
            )
            self.wires.append(f"wire {vector(width)}{short}_{signal};")
            driven_by_process = {s for group in _SIGNALS_OF.values() for s in group}
            if signal in driven_by_process and signal not in used:
                self.instances.append(f"assign {short}_{signal} = {width}'d0;")

    def status(self) -> None:
        labels = [self.emitters[c.process].function.label for c in self.top.calls]
        idle = [f"{clean(n)}_{side}_idle" for n in self.axi for side in ("read", "write")]
        done = [f"done_{label}" for label in labels]
        self.ports.append(f"output wire [{max(1, 4 * len(self.axi)) - 1}:0] axi_error")
        errors = [f"{clean(n)}_{side}_error" for n in self.axi for side in ("read", "write")]
        self.wires += ["wire deadlock;", "logic start_reg;", "wire clear = start & !start_reg;"]
        self.instances += [
            f"assign axi_error = {{{', '.join(reversed(errors))}}};"
            if errors
            else "assign axi_error = 1'b0;",
            f"assign done = {' & '.join([*done, *idle])};",
            "always_ff @(posedge clk) start_reg <= start & !rst;",
            connect(
                "hls_deadlock",
                "u_deadlock",
                {"NUM": len(labels), "CYCLES": self.deadlock_cycles},
                {
                    "clk": "clk",
                    "rst": "rst",
                    "stalled": "{" + ", ".join(f"stalled_{x}" for x in labels) + "}",
                    "done": "{" + ", ".join(done) + "}",
                    "deadlock": "deadlock",
                },
            ),
        ]
