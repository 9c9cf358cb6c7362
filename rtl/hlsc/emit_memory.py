"""Memories of one process: register files, ROMs, and simple dual-port RAMs."""

from __future__ import annotations

from .ir import Const
from .values import Values
from .verilog import any_of, clean, connect, literal, priority_mux, vector


class MemoryEmitter:
    """Collects accesses while operations are emitted; :meth:`finish` writes the instances."""

    def __init__(self, values: Values):
        self.values = values
        self.lines: list[str] = []
        self.banks: dict[tuple, dict] = {}
        self.files: dict = {}
        self.num_ram_bits = 0
        self.rams: list[dict] = []

    @staticmethod
    def bank_name(memory, bank) -> str:
        return "_".join([f"m_{clean(memory.name)}", *map(str, bank)])

    def wire(self, inst, text: str) -> None:
        name = f"w_{self.values.name(inst)}"
        self.values.declarations.append(f"wire {vector(inst.width)}{name};")
        self.values.assigns.append(f"assign {name} = {text};")

    def load(self, inst, block, enable: str) -> None:
        access, memory = inst.aux, inst.aux.memory
        address = self.values.at(inst.args[0], block, inst.time)
        if memory.array.is_rom:
            self.rom(inst, access, address)
        elif memory.is_registers:
            self.register_file(memory)
            name = self.bank_name(memory, ())
            if isinstance(inst.args[0], Const):
                self.wire(inst, f"{name}_{inst.args[0].value}")
            else:
                self.wire(inst, _pick(f"{name}_all", address, memory))
        else:
            self.bank(access)["reads"].append((enable, address))
            self.wire(inst, f"{self.bank_name(memory, access.bank)}_q")

    def store(self, inst, block, enable: str) -> None:
        access, memory = inst.aux, inst.aux.memory
        address, data = (self.values.at(a, block, inst.time) for a in inst.args)
        if not memory.is_registers:
            self.bank(access)["writes"].append((enable, address, data))
            return
        self.register_file(memory)
        name = self.bank_name(memory, ())
        if isinstance(inst.args[0], Const):
            self.values.updates.append(f"if ({enable}) {name}_{inst.args[0].value} <= {data};")
            return
        for element in range(memory.depth):
            match = f"{address} == {literal(element, memory.addr_bits)}"
            self.values.updates.append(f"if ({enable} & ({match})) {name}_{element} <= {data};")

    def bank(self, access) -> dict:
        key = (access.memory, access.bank)
        return self.banks.setdefault(key, {"reads": [], "writes": []})

    def rom(self, inst, access, address: str) -> None:
        memory, name = access.memory, f"rom_{self.values.name(inst)}"
        init = _pack(memory.initial_words(access.bank), memory.bits, memory.depth)
        if memory.is_registers:
            self.values.declarations.append(
                f"localparam logic [{memory.bits * memory.depth - 1}:0] {name} = {init};"
            )
            self.wire(inst, _pick(name, address, memory))
            return
        self.values.declarations.append(f"wire {vector(memory.bits)}{name}_q;")
        params = {
            "WIDTH": memory.bits,
            "DEPTH": memory.depth,
            "ADDR_BITS": memory.addr_bits,
            "INIT": init,
        }
        ports = {
            "clk": "clk",
            "read_enable": "!stall",
            "read_addr": address,
            "read_data": f"{name}_q",
        }
        self.lines.append(connect("hls_rom", f"u_{name}", params, ports))
        self.wire(inst, f"{name}_q")

    def register_file(self, memory) -> None:
        if memory in self.files:
            return
        self.files[memory] = True
        name, words = self.bank_name(memory, ()), memory.initial_words(()) or [0] * memory.depth
        declare = self.values.declarations.append
        for element in range(memory.depth):
            declare(f"logic {vector(memory.bits)}{name}_{element};")
            declare(f"initial {name}_{element} = {literal(words[element], memory.bits)};")
        self.values.num_register_bits += memory.bits * memory.depth
        members = ", ".join(f"{name}_{k}" for k in reversed(range(memory.depth)))
        declare(f"wire [{memory.bits * memory.depth - 1}:0] {name}_all = {{{members}}};")

    def finish(self) -> None:
        """One RAM per bank; fields of one struct that are always accessed together share a RAM."""
        groups: dict = {}
        for (memory, bank), use in self.banks.items():
            outer = bank[: sum(p is not None for p in memory.split[: memory.num_outer_dims])]
            writes = tuple((e, a) for e, a, _ in use["writes"])
            key = (memory.array.name, outer, tuple(use["reads"]), writes, memory.depth)
            groups.setdefault(key, []).append((memory, bank, use))
        for members in groups.values():
            self.ram(members)

    def ram(self, members) -> None:
        memory, bank, use = members[0]
        name, width = self.bank_name(memory, bank), sum(m.bits for m, _, _ in members)
        reads, writes = use["reads"], use["writes"]
        data = []
        for k, (write_enable, _, _) in enumerate(writes):
            parts = [u["writes"][k][2] for _, _, u in reversed(members)]
            data.append(
                (write_enable, parts[0] if len(parts) == 1 else "{" + ", ".join(parts) + "}")
            )
        declare = self.values.declarations.append
        for member, member_bank, _ in members:
            declare(f"wire {vector(member.bits)}{self.bank_name(member, member_bank)}_q;")
        outputs = ", ".join(f"{self.bank_name(m, b)}_q" for m, b, _ in reversed(members))
        ports = {
            "clk": "clk",
            "read_enable": f"!stall & {any_of([e for e, _ in reads])}",
            "read_addr": priority_mux(reads, memory.addr_bits),
            "read_data": f"{{{outputs}}}" if len(members) > 1 else outputs,
            "write_enable": f"!stall & {any_of([e for e, _, _ in writes])}",
            "write_addr": priority_mux([(e, a) for e, a, _ in writes], memory.addr_bits),
            "write_data": priority_mux(data, width),
        }
        params = {
            "WIDTH": width,
            "DEPTH": memory.depth,
            "ADDR_BITS": memory.addr_bits,
            **self.init(members, width),
        }
        self.lines.append(connect("hls_ram", f"u_{name}", params, ports))
        self.num_ram_bits += width * memory.depth
        self.rams.append(
            {"array": memory.array.label, "bank": list(bank), "bits": width, "words": memory.depth}
        )

    @staticmethod
    def init(members, width: int) -> dict:
        contents = [(m, m.initial_words(b)) for m, b, _ in members]
        if not any(words for _, words in contents):
            return {}
        depth, packed = members[0][0].depth, []
        for address in range(depth):
            total, at = 0, 0
            for memory, words in contents:
                total |= (words[address] if words else 0) << at
                at += memory.bits
            packed.append(total)
        return {"INIT_BITS": width * depth, "INIT": _pack(packed, width, depth)}


def _pack(words, bits: int, depth: int) -> str:
    total = 0
    for address, word in enumerate(words or []):
        total |= word << (address * bits)
    return literal(total, bits * depth)


def _pick(name: str, address: str, memory) -> str:
    return f"{name}[32'({address}) * 32'd{memory.bits} +: {memory.bits}]"
