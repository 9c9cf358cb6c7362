"""The top module around the kernel: AXI4-Lite registers as Vitis HLS lays them out, interrupt."""

# ruff: noqa: E501 (text of generated code)
from __future__ import annotations

from dataclasses import dataclass, field

from .dataflow import Top
from .toplevel import Kernel, axi_ports
from .verilog import clean, connect, vector


@dataclass
class Register:
    """A register of the AXI4-Lite block."""

    name: str
    offset: int
    bits: int
    access: str
    words: list[str] = field(default_factory=list)


def register_map(kernel: Kernel, order: list[str]) -> list[Register]:
    """Offsets as Vitis HLS gives them (arguments from 0x10 in order), then the AXI error register
    of hlsc.
    """
    widths, outputs, out, offset = dict(kernel.scalars), dict(kernel.outputs), [], 0x10
    for name in order:
        if name in outputs:
            out.append(Register(name, offset, outputs[name], "ro"))
            offset += 0x10
        elif name in widths or name in kernel.bases:
            bits = widths.get(name, 64)
            out.append(Register(name, offset, bits, "rw"))
            offset += 0x8 if bits <= 32 else 0xC
    out.append(Register("axi_error", -(-offset // 0x10) * 0x10, max(1, 4 * len(kernel.axi)), "ro"))
    return out


def wrapper(top: Top, kernel: Kernel, registers: list[Register]) -> str:
    """Module ``<top>``: ap_clk, ap_rst_n, s_axi_control, m_axi_*, irq around the kernel."""
    return _Wrapper(top, kernel, registers).text()


class _Wrapper:
    def __init__(self, top: Top, kernel: Kernel, registers: list[Register]):
        self.top, self.kernel, self.registers = top, kernel, registers
        self.addr_bits = max(6, (registers[-1].offset + 8 - 1).bit_length())

    def text(self) -> str:
        ports = ["input wire ap_clk", "input wire ap_rst_n", *self.lite_ports(), "output wire irq"]
        for name, bits in self.kernel.axi:
            ports += [f"{d} wire {vector(w)}{s}" for d, w, s in axi_ports(f"m_axi_{name}", bits)]
        body = [
            "logic rst_reg;",
            "always_ff @(posedge ap_clk) rst_reg <= !ap_rst_n;",
            "wire rst = rst_reg | !ap_rst_n;",
            "logic start_reg, done_reg, gie_reg, ier_reg, isr_reg;",
            "wire done;",
            "wire finish = start_reg & done;",
            *self.declare(),
            *self.instances(),
            *self.read(),
            *self.write(),
            "assign irq = gie_reg & isr_reg;",
        ]
        joined = ",\n  ".join(ports)
        return (
            f"module {self.top.name} (\n  {joined}\n);\n"
            + "\n".join("  " + line for line in body)
            + "\nendmodule\n"
        )

    def lite_ports(self) -> list[str]:
        a = self.addr_bits
        signals = [
            ("input", a, "awaddr"), ("input", 1, "awvalid"), ("output", 1, "awready"), ("input", 32, "wdata"),
            ("input", 4, "wstrb"), ("input", 1, "wvalid"), ("output", 1, "wready"), ("output", 2, "bresp"),
            ("output", 1, "bvalid"), ("input", 1, "bready"), ("input", a, "araddr"), ("input", 1, "arvalid"),
            ("output", 1, "arready"), ("output", 32, "rdata"), ("output", 2, "rresp"), ("output", 1, "rvalid"),
            ("input", 1, "rready"),
        ]  # fmt: skip
        self.lite = [s for _, _, s in signals]
        return [f"{d} wire {vector(w)}s_axi_control_{s}" for d, w, s in signals]

    def declare(self) -> list[str]:
        out = [
            "wire write_enable, read_enable;",
            f"wire [{self.addr_bits - 1}:0] write_addr, read_addr;",
        ]
        out += ["wire [31:0] write_data, write_mask;", "logic [31:0] read_data;"]
        for register in self.registers:
            kind = "logic" if register.access == "rw" else "wire"
            out.append(f"{kind} {vector(register.bits)}{self.signal(register)};")
        return out

    @staticmethod
    def signal(register: Register) -> str:
        return (
            f"{clean(register.name)}_reg"
            if register.access == "rw"
            else f"{clean(register.name)}_value"
        )

    def instances(self) -> list[str]:
        lite = {
            "clk": "ap_clk",
            "rst": "rst",
            **{f"s_axi_{s}": f"s_axi_control_{s}" for s in self.lite},
        }
        lite |= {
            s: s
            for s in (
                "write_enable",
                "write_addr",
                "write_data",
                "write_mask",
                "read_enable",
                "read_addr",
                "read_data",
            )
        }
        kernel = {"clk": "ap_clk", "rst": "rst", "start": "start_reg", "done": "done"}
        names = {r.name: self.signal(r) for r in self.registers}
        kernel |= {f"arg_{clean(n)}": names[n] for n, _ in self.kernel.scalars}
        kernel |= {f"base_{clean(n)}": names[n] for n in self.kernel.bases}
        kernel |= {f"out_{clean(n)}": names[n] for n, _ in self.kernel.outputs}
        kernel["axi_error"] = names["axi_error"]
        for name, bits in self.kernel.axi:
            kernel |= {s: s for _, _, s in axi_ports(f"m_axi_{name}", bits)}
        return [
            connect("hls_axil", "u_axil", {"ADDR_BITS": self.addr_bits}, lite),
            connect(f"{self.top.name}_kernel", "u_kernel", {}, kernel),
        ]

    def address(self, offset: int) -> str:
        return f"{self.addr_bits}'h{offset:x}"

    def words(self, register: Register):
        """(offset, low bit, bits) of the 32-bit words of a register."""
        for low in range(0, register.bits, 32):
            yield register.offset + low // 8, low, min(32, register.bits - low)

    def read(self) -> list[str]:
        lines = ["always_comb begin", "  read_data = '0;", "  case (read_addr)"]
        lines.append(
            f"    {self.address(0)}: read_data[3:0] = {{done_reg, !start_reg, done_reg, start_reg}};"
        )
        for offset, name in ((4, "gie_reg"), (8, "ier_reg"), (12, "isr_reg")):
            lines.append(f"    {self.address(offset)}: read_data[0] = {name};")
        for register in self.registers:
            for offset, low, bits in self.words(register):
                part = f"[{low + bits - 1}:{low}]" if register.bits > 1 else ""
                lines.append(
                    f"    {self.address(offset)}: read_data[{bits - 1}:0] = {self.signal(register)}{part};"
                )
        return [*lines, "    default: ;", "  endcase", "end"]

    def write(self) -> list[str]:
        zero = self.address(0)
        lines = [
            "always_ff @(posedge ap_clk) begin",
            f"  if (read_enable && read_addr == {zero}) done_reg <= 1'b0;",
            f"  if (write_enable && write_addr == {zero} && write_data[0] && write_mask[0]) start_reg <= 1'b1;",
            "  if (finish) begin",
            "    start_reg <= 1'b0;",
            "    done_reg <= 1'b1;",
            "    if (ier_reg) isr_reg <= 1'b1;",
            "  end",
            "  if (write_enable) case (write_addr)",
            f"    {self.address(4)}: if (write_mask[0]) gie_reg <= write_data[0];",
            f"    {self.address(8)}: if (write_mask[0]) ier_reg <= write_data[0];",
            f"    {self.address(12)}: if (write_mask[0] && write_data[0]) isr_reg <= !isr_reg;",
        ]
        for register in self.registers:
            if register.access != "rw":
                continue
            for offset, low, bits in self.words(register):
                part = (
                    f"{self.signal(register)}[{low + bits - 1}:{low}]"
                    if register.bits > 1
                    else self.signal(register)
                )
                high = f"[{bits - 1}:0]"
                lines.append(
                    f"    {self.address(offset)}: {part} <= (write_data{high} & write_mask{high}) | ({part} & ~write_mask{high});"
                )
        lines += ["    default: ;", "  endcase", "  if (rst) begin"]
        lines += [
            f"    {name} <= 1'b0;"
            for name in ("start_reg", "done_reg", "gie_reg", "ier_reg", "isr_reg")
        ]
        lines += [f"    {self.signal(r)} <= '0;" for r in self.registers if r.access == "rw"]
        return [*lines, "  end", "end"]
