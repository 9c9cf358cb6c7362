"""A scheduled process as one SystemVerilog module: state machine, pipelines, memories, one stall
for everything.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from .emit_checks import check_dependences
from .emit_memory import MemoryEmitter
from .ir import Function
from .values import Values, registers_operands
from .verilog import any_of, clean, expression, literal, priority_mux, vector

# channel -> (what it waits for, ready signal, valid signal, data signals with the argument that
# drives each)
_CHANNELS = {
    "rd": ("data on", "rvalid", "rready", ()),
    "wr": ("room in", "wready", "wvalid", ("wdata",)),
    "mrq": ("the read request queue of", "rq_ready", "rq_valid", ("rq_addr", "rq_len")),
    "mrd": ("read data of", "rd_valid", "rd_ready", ()),
    "mwq": ("the write request queue of", "wq_ready", "wq_valid", ("wq_addr", "wq_len")),
    "mwr": ("room for write data of", "wd_ready", "wd_valid", ("wd_data",)),
    "mwb": ("the write response of", "wb_valid", "wb_ready", ()),
}
_DELAYS_PER_BLOCK = 16
_INPUT_DATA = {"rd": "rdata", "mrd": "rd_data"}


class ProcessEmitter:
    """Text of one process module; ``channels`` tells the top level what to connect."""

    def __init__(
        self, function: Function, module_name: str, peers: dict[int, str], check: bool = False
    ):
        self.check = check
        self.checks: list[str] = []
        self.function, self.module_name, self.peers = function, module_name, peers
        self.values = Values(function)
        self.memories = MemoryEmitter(self.values)
        self.ports: list[str] = [
            "input wire clk",
            "input wire rst",
            "input wire start",
            "output wire done",
        ]
        self.channels: dict[tuple[int, str], dict] = {}
        self.outputs: dict[int, int] = {}
        self.blocked: list[tuple[str, str]] = []
        self.states = ["S_IDLE", "S_DONE"]
        self.cases: list[str] = []
        self.resets: list[str] = []
        self.loop_nexts: list[str] = []

    def run(self) -> str:
        """The module's text."""
        for block in self.function.blocks.values():
            for inst in block.insts:
                self.instruction(inst, block)
            if self.check and block.loop and block.loop.dependences:
                self.checks += check_dependences(self.values, block, partial(self.asked_at, block))
        for block in self.function.blocks.values():
            if not self.is_trampoline(block):
                (self.loop_states if block.loop else self.straight_states)(block)
        self.cases.insert(
            0, f"S_IDLE: if (start) begin {self.goto(None, self.function.entry, None, None)} end"
        )
        self.cases.insert(1, "S_DONE: if (!start) state_reg <= S_IDLE;")
        self.channel_ports()
        self.memories.finish()
        return self.text()

    # ------------------------------------------------------------------ operations
    def enable(self, inst, block) -> str:
        return self.enable_at(block, inst, inst.time)

    def enable_at(self, block, inst, time: int) -> str:
        """The condition that an operation runs, seen in its own cycle or a later one."""
        active = self.values.active(block, time)
        if inst.pred is None:
            return active
        return f"({active} & {self.values.at(inst.pred, block, time)})"

    def asked_at(self, block, inst, time: int) -> str:
        """The condition under which the source executes an operation, also if it is speculated."""
        if inst.asked is None:
            return self.enable_at(block, inst, time)
        if inst.asked.block is block and inst.asked.time + inst.asked.latency > time:
            return "1'b0"  # not known yet: this pair is not checked
        return f"({self.values.active(block, time)} & {self.values.at(inst.asked, block, time)})"

    def instruction(self, inst, block) -> None:
        values, op = self.values, inst.op
        if op in ("zext", "sext"):
            return
        if op == "phi":
            self.phi(inst, block)
        elif op in _CHANNELS:
            self.access(inst, block)
        elif op == "ld":
            self.memories.load(inst, block, self.enable(inst, block))
        elif op == "st":
            self.memories.store(inst, block, self.enable(inst, block))
        elif op == "out":
            port, data = inst.aux["port"], values.at(inst.args[0], block, inst.time)
            self.outputs[port] = inst.args[0].width
            values.updates.append(
                f"if ({self.enable(inst, block)}) out_{self.argument(port)} <= {data};"
            )
        else:
            time = inst.time + 1 if registers_operands(inst) else inst.time
            self.wire(inst, expression(inst, [values.at(a, block, time) for a in inst.args]))

    def wire(self, inst, text: str) -> None:
        self.values.declarations.append(f"wire {vector(inst.width)}w_{self.values.name(inst)};")
        self.values.assigns.append(f"assign w_{self.values.name(inst)} = {text};")

    def argument(self, index: int) -> str:
        return clean(self.function.args[index].name.removesuffix(".coerce"))

    def phi(self, inst, block) -> None:
        values = self.values
        values.register(f"r_{values.name(inst)}", inst.width)
        if not block.loop:
            return
        value = inst.incoming["latch"]
        inside = getattr(value, "block", None) is block
        time = max(value.time + value.latency, inst.time) if inside else inst.time
        source = values.narrow(value, inst.width, block, time)
        values.updates.append(
            f"if ({values.active(block, time)}) r_{values.name(inst)} <= {source};"
        )

    def access(self, inst, block) -> None:
        """A blocking operation: it stalls the process until its channel is ready."""
        port, values = inst.aux["port"], self.values
        channel = self.channels.setdefault(
            (port, inst.op), {"enables": [], "data": defaultdict(list), "widths": []}
        )
        enable = self.enable(inst, block)
        channel["enables"].append(enable)
        for k, operand in enumerate(inst.args):
            channel["data"][k].append((enable, values.at(operand, block, inst.time)))
        channel["widths"] = [a.width for a in inst.args] or [inst.width]
        if inst.width:
            self.wire(inst, f"{self.argument(port)}_{_INPUT_DATA[inst.op]}")

    def channel_ports(self) -> None:
        for _index, arg in enumerate(self.function.args):
            if arg.width:
                self.ports.append(f"input wire {vector(arg.width)}arg_{clean(arg.name)}")
        for (port, op), channel in self.channels.items():
            name = self.argument(port)
            what, ready, valid, data = _CHANNELS[op]
            enable = f"en_{name}_{op}"
            self.values.declarations.append(f"wire {enable} = {any_of(channel['enables'])};")
            self.blocked.append((f"{enable} & !{name}_{ready}", f"{what} {self.peers[port]}"))
            self.ports += [f"input wire {name}_{ready}", f"output wire {name}_{valid}"]
            self.values.assigns.append(f"assign {name}_{valid} = {enable} & !stall;")
            for k, signal in enumerate(data):
                width = channel["widths"][k]
                self.ports.append(f"output wire {vector(width)}{name}_{signal}")
                self.values.assigns.append(
                    f"assign {name}_{signal} = {priority_mux(channel['data'][k], width)};"
                )
            if op in _INPUT_DATA:
                self.ports.append(
                    f"input wire {vector(channel['widths'][0])}{name}_{_INPUT_DATA[op]}"
                )
        for port, width in self.outputs.items():
            self.ports.append(f"output logic {vector(width)}out_{self.argument(port)}")
            self.resets.append(f"out_{self.argument(port)} <= '0;")

    # ------------------------------------------------------------------ control
    def is_trampoline(self, block) -> bool:
        """A block that does nothing but go on is not a state."""
        return not block.loop and not block.insts and block.term.kind in ("br", "ret")

    def state(self, block, time: int = 0) -> str:
        name = self.values.block_names[block.name]
        return f"S_{name}" if block.loop else f"S_{name}_{time}"

    def goto(self, block, target: str, source: str | None, time: int | None) -> str:
        """Assignments that take the edge ``source`` -> ``target``, evaluated in ``time`` of
        ``block`` (None: settled).
        """
        out = []
        while True:
            following = self.function.blocks[target]
            for phi in following.insts:
                if phi.op == "phi":
                    value = self.values.narrow(phi.incoming[source], phi.width, block, time)
                    out.append(f"r_{self.values.name(phi)} <= {value};")
            if not self.is_trampoline(following):
                break
            if following.term.kind == "ret":
                return " ".join([*out, "state_reg <= S_DONE;"])
            source, target = target, following.term.targets[0]
        if following.loop:
            name = self.values.block_names[following.name]
            out.append(f"pv_{name} <= {literal(1, following.num_cycles)};")
        return " ".join([*out, f"state_reg <= {self.state(following)};"])

    def loop_states(self, block) -> None:
        """Stage k of the pipeline is busy when bit k of its valid vector is set."""
        name, depth, ii = self.values.block_names[block.name], block.num_cycles, block.loop.ii
        valid = f"pv_{name}"
        at = (lambda k: f"{valid}[{k}]") if depth > 1 else (lambda k: valid)
        stay = self.values.at(block.term.cond, block, ii - 1)
        self.values.declarations.insert(0, f"logic {vector(depth)}{valid};")
        self.values.declarations.append(f"wire next_{name} = {at(ii - 1)} & {stay};")
        rest = f" & {valid}[{depth - 2}:0] == {depth - 1}'d0" if depth > 1 else ""
        self.values.declarations.append(f"wire last_{name} = {at(depth - 1)} & !next_{name}{rest};")
        shifted = f"{{{valid}[{depth - 2}:0], next_{name}}}" if depth > 1 else f"next_{name}"
        self.resets.append(f"{valid} <= '0;")
        self.states += [f"S_{name}", f"S_{name}_exit"]
        self.cases.append(
            f"S_{name}: begin {valid} <= {shifted}; if (last_{name}) state_reg <= "
            f"S_{name}_exit; end"
        )
        target = block.term.targets[0]
        self.cases.append(f"S_{name}_exit: begin {self.goto(None, target, block.name, None)} end")

    def straight_states(self, block) -> None:
        last = block.num_cycles - 1
        for time in range(block.num_cycles):
            self.states.append(self.state(block, time))
            if time < last:
                self.cases.append(
                    f"{self.state(block, time)}: state_reg <= {self.state(block, time + 1)};"
                )
        term = block.term
        if term.kind == "ret":
            body = "state_reg <= S_DONE;"
        elif term.kind == "br":
            body = self.goto(block, term.targets[0], block.name, last)
        elif term.kind == "cbr":
            taken, other = (
                f"begin {self.goto(block, t, block.name, last)} end" for t in term.targets
            )
            body = f"if ({self.values.at(term.cond, block, last)}) {taken} else {other}"
        else:
            arms = [
                f"{literal(value, term.cond.width)}: begin "
                f"{self.goto(block, target, block.name, last)} end"
                for value, target in zip(term.cases, term.targets, strict=False)
            ]
            default = f"default: begin {self.goto(block, term.targets[-1], block.name, last)} end"
            choices = " ".join([*arms, default])
            body = f"case ({self.values.at(term.cond, block, last)}) {choices} endcase"
        self.cases.append(f"{self.state(block, last)}: begin {body} end")

    # ------------------------------------------------------------------ text
    def text(self) -> str:
        values = self.values
        width = max(1, (len(self.states) - 1).bit_length())
        codes = [
            f"  localparam logic [{width - 1}:0] {s} = {literal(k, width)};"
            for k, s in enumerate(self.states)
        ]
        waits = [f"assign blocked[{k}] = {cond};" for k, (cond, _) in enumerate(self.blocked)]
        num = max(1, len(self.blocked))
        self.ports += ["output wire stalled", "input wire deadlock"]
        body = [
            *codes,
            f"  logic [{width - 1}:0] state_reg;",
            f"  wire [{num - 1}:0] blocked;",
            *("  " + line for line in waits or ["assign blocked = 1'b0;"]),
            "  wire stall = rst | (|blocked);",
            "  assign stalled = |blocked;",
            "  assign done = state_reg == S_DONE;",
            *("  " + line for line in values.declarations),
            *("  " + line for line in values.assigns),
            *("  " + line for line in self.memories.lines),
            *self.delay_blocks(),
            "  always_ff @(posedge clk) begin",
            "    if (!stall) begin",
            *("      " + line for line in values.updates),
            "      case (state_reg)",
            *("        " + line for line in self.cases),
            "        default: state_reg <= S_IDLE;",
            "      endcase",
            "    end",
            "    if (rst) begin",
            *("      " + line for line in ["state_reg <= S_IDLE;", *self.resets]),
            "    end",
            "  end",
            *self.report(),
        ]
        ports = ",\n  ".join(self.ports)
        return f"module {self.module_name} (\n  {ports}\n);\n" + "\n".join(body) + "\nendmodule\n"

    def delay_blocks(self) -> list[str]:
        """Clocked blocks for the registers that only hold a value of the cycle before."""
        lines, delays = [], self.values.delays
        for start in range(0, len(delays), _DELAYS_PER_BLOCK):
            lines.append("  always_ff @(posedge clk) if (!stall) begin")
            lines += ["    " + line for line in delays[start : start + _DELAYS_PER_BLOCK]]
            lines.append("  end")
        return lines

    def report(self) -> list[str]:
        """Simulation only: on a deadlock, say what this process waits for."""
        lines = ["`ifndef SYNTHESIS", "  always @(posedge clk) if (deadlock) begin"]
        for k, (_, what) in enumerate(self.blocked):
            message = f"hlsc deadlock: process {self.function.label} waits for {what}"
            lines.append(f'    if (blocked[{k}]) $display("{message}");')
        lines.append("  end")
        if self.checks:
            lines += [
                "  always @(posedge clk) begin",
                *("    " + line for line in self.checks),
                "  end",
            ]
        return [*lines, "`endif"]
