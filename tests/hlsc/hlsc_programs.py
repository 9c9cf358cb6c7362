"""Random programs of the accepted subset: each chain is reader -> random process -> writer over
streams.

Everything is defined in C++ (masked indices and shifts, initialised variables, -fwrapv), so g++ is
the reference.
"""

# ruff: noqa: E501 (text of generated code)
from __future__ import annotations

import math
import random

TYPES = ["int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t"]
CONSTANTS = [0, 1, 2, 3, 7, 127, 255, -1, -128, 32767, 65535, 123456789]

_HEAD = """#include <stdint.h>
#include "hls_burst_maxi.h"
#include "hls_stream.h"
typedef hls::burst_maxi<uint64_t> port_t;
struct in_t { int32_t x; int16_t y[2]; uint8_t z; };
struct out_t { uint64_t d; bool last; };
struct cell_t { int8_t a; uint16_t b; int32_t c[2]; };
static int32_t clip(int64_t v, int32_t lo, int32_t hi) { return v < lo ? lo : v > hi ? hi : (int32_t)v; }
"""

_CHAIN = """
void reader@K@(port_t mem, uint32_t n, hls::stream<in_t> &in) {
  mem.read_request(@SKIP@, n);
  for (uint32_t i = 0; i < n; i++) {
#pragma HLS pipeline II=1
    uint64_t w = mem.read();
    in_t t;
    t.x = (int32_t)w;
    for (int k = 0; k < 2; k++) {
#pragma HLS unroll
      t.y[k] = (int16_t)(w >> (32 + 16 * k));
    }
    t.z = (uint8_t)(w >> 24);
    in.write(t);
  }
}
void work@K@(uint32_t n, hls::stream<in_t> &in, hls::stream<out_t> &out) {
@DECLARE@
  for (uint32_t it = 0; it < n; it++) {
    in_t q = in.read();
    int32_t x = q.x;
    int64_t y = (int64_t)q.y[0] * q.y[1];
    uint8_t z = q.z;
@BODY@
    { out_t o; o.d = @CHECK@; o.last = false; out.write(o); }
  }
  out_t o; o.d = 0; o.last = true;
  out.write(o);
}
void writer@K@(port_t mem, hls::stream<out_t> &out) {
  uint32_t num = 0;
  bool run = true;
  while (run) {
    out_t o = out.read();
    mem.write_request(num & 4095, 1);
    mem.write(o.d);
    num++;
    run = !o.last;
  }
  for (uint32_t i = 0; i < num; i++) mem.write_response();
}
"""


class Array:
    """A declared array: which dimensions need constant indices, and what it holds at first."""

    def __init__(self, name: str, kind: str, dims: list[int], fixed: set[int], pragma: str):
        self.name, self.kind, self.dims, self.fixed, self.pragma = name, kind, dims, fixed, pragma
        self.values: list[int] = []

    def declaration(self) -> str:
        dims = "".join(f"[{d}]" for d in self.dims)
        values = ", ".join(map(str, self.values))
        return (
            f"  static {self.kind} {self.name}{dims}"
            + (f" = {{{values}}}" if values else "")
            + f";\n{self.pragma}"
        )


class Generator:
    """One chain."""

    def __init__(self, rng: random.Random, number: int):
        self.rng, self.number = rng, number
        self.count = 0
        self.indent = 2
        self.loop_vars: list[
            tuple[str, int]
        ] = []  # unrolled variables: usable in partitioned dimensions
        self.outs_left = 12

    # ------------------------------------------------------------------ declarations
    def arrays(self) -> list[Array]:
        out, rng = [], self.rng
        for k in range(rng.randrange(1, 4)):
            kind = rng.choice(TYPES)
            dims = [
                rng.choice([4, 8, 16]) if d == 0 else rng.choice([2, 4])
                for d in range(rng.choice([1, 1, 2, 2, 3]))
            ]
            out.append(self.array(f"A{k}", kind, dims))
        return out

    def array(self, name: str, kind: str, dims: list[int]) -> Array:
        rng, fixed, pragma = self.rng, set(), ""
        choice = rng.random()
        if choice < 0.2:
            pragma = f"#pragma HLS array_partition variable={name} complete dim=0\n"
        elif choice < 0.7:
            for d in range(len(dims)):
                if rng.random() < 0.5:
                    continue
                style = rng.choice(["complete", "cyclic", "block"])
                factor = f" factor={rng.choice([2, dims[d]])}" if style != "complete" else ""
                pragma += (
                    f"#pragma HLS array_partition variable={name} {style}{factor} dim={d + 1}\n"
                )
                fixed.add(d)
            if len(fixed) == len(dims) and "cyclic" not in pragma and "block" not in pragma:
                fixed = set()  # completely partitioned: registers, any index
        array = Array(name, kind, dims, fixed, pragma)
        if rng.random() < 0.5:
            low = 0 if kind[0] == "u" else -100
            array.values = [rng.randrange(low, 120) for _ in range(math.prod(dims))]
        return array

    # ------------------------------------------------------------------ expressions
    def expr(self, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            pick = rng.random()
            if pick < 0.6:
                return rng.choice(self.readable)
            return str(rng.choice(CONSTANTS)) if pick < 0.75 else self.element(0)
        e = lambda: self.expr(depth - 1)  # noqa: E731
        kind = rng.randrange(19)
        if kind < 3:
            return f"({e()} + {e()})"
        if kind < 5:
            return f"({e()} - {e()})"
        if kind < 7:
            return f"({e()} * {e()})"
        if kind == 7:
            return f"({e()} {rng.choice('&|^')} {e()})"
        if kind == 8:
            return f"((int64_t){e()} >> (({e()}) & {rng.choice([3, 7, 31, 63])}))"
        if kind == 9:
            return f"(int64_t)((uint64_t){e()} << (({e()}) & {rng.choice([3, 7, 31, 63])}))"
        if kind == 10:
            return f"(({self.cond(depth - 1)}) ? (int64_t){e()} : (int64_t){e()})"
        if kind == 11:
            return f"({rng.choice(TYPES)})({e()})"
        if kind == 12:
            return self.element(depth - 1)
        if kind == 13:
            return f"((int64_t){e()} < (int64_t){e()} ? 1 : 0)"
        if kind == 14:
            return f"(uint32_t)({e()} >> {rng.randrange(1, 8)})"
        if kind == 15:
            return f"clip((int64_t){e()}, {-rng.randrange(1, 300)}, {rng.randrange(300)})"
        if kind == 16:
            return f"T0[({e()}) & 15]"
        if kind == 17:
            return f"S0[({e()}) & 7].{rng.choice(['a', 'b', 'c[0]', 'c[1]'])}"
        return f"(int32_t)((uint32_t){e()} << {rng.randrange(1, 8)} | (uint32_t){e()} >> {rng.randrange(1, 24)})"

    def cond(self, depth: int) -> str:
        cast = self.rng.choice(["int64_t", "uint32_t", "int16_t", "uint8_t"])
        return f"({cast})({self.expr(depth)}) {self.rng.choice(['<', '>', '==', '!=', '<=', '>='])} ({cast})({self.expr(depth)})"

    def index(self, array: Array, d: int, depth: int) -> str:
        num = array.dims[d]
        fitting = [v for v, trips in self.loop_vars if trips <= num]
        if d in array.fixed:
            return self.rng.choice([*fitting, str(self.rng.randrange(num))])
        if self.rng.random() < 0.2:
            return str(self.rng.randrange(num))
        return f"({self.expr(depth)}) & {num - 1}"

    def element(self, depth: int) -> str:
        array = self.rng.choice(self.declared)
        return array.name + "".join(
            f"[{self.index(array, d, min(depth, 1))}]" for d in range(len(array.dims))
        )

    # ------------------------------------------------------------------ statements
    def block(self, num: int, depth: int, *, inside: str, outs: bool) -> str:
        """``inside``: "" (plain), "pipeline", or "unroll" (only unrolled loops may follow)."""
        pad = "  " * self.indent
        lines = []
        for _ in range(num):
            lines.append(self.statement(pad, depth, inside, outs))
        return "\n".join(lines)

    def nested(self, num: int, depth: int, inside: str, outs: bool) -> str:
        self.indent += 1
        text = self.block(num, depth, inside=inside, outs=outs)
        self.indent -= 1
        return text

    def statement(self, pad: str, depth: int, inside: str, outs: bool) -> str:
        rng = self.rng
        pick = rng.random()
        if pick < 0.3 or depth <= 0 and pick < 0.55:
            return f"{pad}{rng.choice(self.mutable)} = {self.expr(rng.randrange(1, 4))};"
        if pick < 0.45:
            return f"{pad}{self.element(1)} {rng.choice(['=', '+=', '^=', '-='])} {self.expr(rng.randrange(1, 3))};"
        if pick < 0.52:
            return self.struct_statement(pad)
        if depth > 0 and pick < 0.68:
            return self.branch(pad, depth, inside, outs)
        if depth > 0 and pick < 0.73:
            return self.switch(pad, depth, inside, outs)
        if pick < 0.77:
            return self.pointer(pad)
        if outs and pick < 0.84 and self.outs_left:
            self.outs_left -= 1
            return f"{pad}{{ out_t o; o.d = (uint64_t)({self.expr(2)}); o.last = false; out.write(o); }}"
        if depth > 0:
            return self.loop(pad, depth, inside, outs)
        return f"{pad}{rng.choice(self.mutable)} = {self.expr(2)};"

    def struct_statement(self, pad: str) -> str:
        rng, at = self.rng, f"({self.expr(1)}) & 7"
        if rng.random() < 0.5:
            field = rng.choice(["a", "b", "c[0]", "c[1]"])
            return f"{pad}S0[{at}].{field} {rng.choice(['=', '+='])} {self.expr(2)};"
        k = self.fresh("s")
        return (
            f"{pad}{{ cell_t {k} = S0[{at}]; {k}.{rng.choice(['a', 'b', 'c[1]'])} ^= {self.expr(1)}; "
            f"S0[({self.expr(1)}) & 7] = {k}; }}"
        )

    def pointer(self, pad: str) -> str:
        name, index = self.fresh("p"), f"({self.expr(1)}) & 7"
        text = f"const int16_t *{name} = ({self.cond(1)}) ? P0 : P1; {self.rng.choice(self.mutable)} += {name}[{index}];"
        if self.rng.random() < 0.5:
            text += f" P{self.rng.randrange(2)}[({self.expr(1)}) & 7] = {self.expr(1)};"
        return f"{pad}{{ {text} }}"

    def branch(self, pad: str, depth: int, inside: str, outs: bool) -> str:
        text = f"{pad}if ({self.cond(1)}) {{\n{self.nested(self.rng.randrange(1, 4), depth - 1, inside, outs)}\n{pad}}}"
        if self.rng.random() < 0.5:
            text += f" else {{\n{self.nested(self.rng.randrange(1, 3), depth - 1, inside, outs)}\n{pad}}}"
        return text

    def switch(self, pad: str, depth: int, inside: str, outs: bool) -> str:
        arms = []
        for value in sorted(self.rng.sample(range(8), self.rng.randrange(2, 5))):
            body = self.nested(1, depth - 1, inside, outs)
            end = "" if self.rng.random() < 0.2 else " break;"
            arms.append(f"{pad}case {value}: {{\n{body}\n{pad}}}{end}")
        arms.append(f"{pad}default: {self.rng.choice(self.mutable)} += 1;")
        return f"{pad}switch (({self.expr(1)}) & 7) {{\n" + "\n".join(arms) + f"\n{pad}}}"

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def loop(self, pad: str, depth: int, inside: str, outs: bool) -> str:
        rng, var = self.rng, self.fresh("i")
        if inside or rng.random() < 0.25:
            return self.unrolled(pad, depth, var, inside, outs)
        pipelined = rng.random() < 0.75
        trips = (
            f"(int)({rng.choice(self.readable)} & {rng.choice([3, 7, 15])})"
            if rng.random() < 0.5
            else str(rng.randrange(1, 12))
        )
        bound = self.fresh("n")
        self.readable.append(var)
        body = self.nested(rng.randrange(1, 5), depth - 1, "pipeline" if pipelined else "", outs)
        if rng.random() < 0.15:
            body += f"\n{pad}  if ({self.cond(1)}) break;"
        extra = self.dependence(var) if pipelined and rng.random() < 0.3 else ("", "")
        self.readable.remove(var)
        head = f"#pragma HLS pipeline II={rng.choice([1, 1, 2, 3])}\n" if pipelined else ""
        return (
            f"{pad}int {bound} = {trips};\n{pad}for (int {var} = 0; {var} < {bound}; {var}++) {{\n"
            f"{head}{extra[0]}{body}\n{extra[1]}{pad}}}"
        )

    def dependence(self, var: str) -> tuple[str, str]:
        """A promise that holds: an array of its own, with disjoint halves or with a lag."""
        name, pad = self.fresh("D"), "  " * (self.indent + 1)
        self.extra.append(f"  static int32_t {name}[32];")
        target = self.rng.choice(self.mutable)
        if self.rng.random() < 0.5:
            head = f"#pragma HLS dependence variable={name} inter false\n"
            body = f"{target} += {name}[16 + (({self.expr(1)}) & 15)]; {name}[({self.expr(1)}) & 15] = {self.expr(1)};"
        else:
            lag = self.rng.choice([4, 8, 16])
            head = f"#pragma HLS dependence variable={name} inter distance={lag} true\n"
            body = f"{target} += {name}[({var} - {lag}) & 31]; {name}[{var} & 31] = {self.expr(2)};"
        return head, f"{pad}{body}\n"

    def unrolled(self, pad: str, depth: int, var: str, inside: str, outs: bool) -> str:
        trips = self.rng.choice([2, 2, 4])
        self.loop_vars.append((var, trips))
        self.readable.append(var)
        body = self.nested(
            self.rng.randrange(1, 3), depth - 1, inside or "unroll", outs and not inside
        )
        self.readable.remove(var)
        self.loop_vars.pop()
        return f"{pad}for (int {var} = 0; {var} < {trips}; {var}++) {{\n#pragma HLS unroll\n{body}\n{pad}}}"

    # ------------------------------------------------------------------ the chain
    def text(self) -> str:
        rng = self.rng
        self.declared = self.arrays()
        self.extra: list[str] = []
        self.mutable = [f"v{k}" for k in range(rng.randrange(3, 7))]
        self.readable = [*self.mutable, "x", "y", "z"]
        body = self.block(rng.randrange(3, 8), 3, inside="", outs=True)
        table = ", ".join(str(rng.randrange(-500, 500)) for _ in range(16))
        declare = [a.declaration() for a in self.declared]
        declare += ["  static cell_t S0[8];", "  static int16_t P0[8], P1[8];", *self.extra]
        declare.append(f"  static const int16_t T0[16] = {{{table}}};")
        if rng.random() < 0.3:
            declare.append("#pragma HLS array_partition variable=T0 complete dim=1")
        declare += [f"  {rng.choice(TYPES)} {v} = {rng.randrange(100)};" for v in self.mutable]
        check = " ^ ".join(f"(uint64_t){v}" for v in self.mutable)
        text = _CHAIN
        for key, value in {
            "K": self.number,
            "SKIP": rng.randrange(8),
            "DECLARE": "\n".join(declare),
            "BODY": body,
            "CHECK": check,
        }.items():
            text = text.replace(f"@{key}@", str(value))
        return text


def program(seeds: list[int]) -> str:
    """One source with a chain per seed; a chain's text depends on its seed only."""
    parts = [_HEAD] + [Generator(random.Random(seed), k).text() for k, seed in enumerate(seeds)]
    args, pragmas, streams, calls = [], [], [], []
    for k in range(len(seeds)):
        args.append(f"port_t src{k}, port_t dst{k}, uint32_t n{k}")
        for name in ("src", "dst"):
            pragmas.append(f"#pragma HLS interface m_axi port={name}{k} bundle={name}{k}")
        streams.append(
            f"  hls::stream<in_t> in{k};\n  hls::stream<out_t> out{k};\n#pragma HLS stream variable=out{k} depth={2 + k}"
        )
        calls.append(
            f"  reader{k}(src{k}, n{k}, in{k});\n  work{k}(n{k}, in{k}, out{k});\n  writer{k}(dst{k}, out{k});"
        )
    parts.append(
        f'extern "C" void core({", ".join(args)}) {{\n'
        + "\n".join([*pragmas, "#pragma HLS dataflow", *streams, *calls])
        + "\n}\n"
    )
    return "\n".join(parts)


def arguments(num_chains: int) -> list[str]:
    """The bench's argument list."""
    out = []
    for k in range(num_chains):
        out += [f"port:src{k}", f"port:dst{k}", f"scalar:n{k}"]
    return out
