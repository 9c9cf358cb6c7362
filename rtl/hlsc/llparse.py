"""A strict reader of LLVM IR text: it knows the instructions of the subset and refuses every other
one.

Pointers stay symbolic (``gep``, ``psel``, ``pphi`` instructions); :mod:`hlsc.lower` resolves them.
"""

from __future__ import annotations

import re

from .errors import HlsError, Location
from .ir import Block, Const, Function, Inst, Term, Undefined
from .layout import Layout, split_commas, split_type
from .metadata import Metadata

_NAME = r'(?:[\w.$-]+|"[^"]+")'
_FLAGS = r"(?:nuw |nsw |exact |disjoint |nneg |samesign |inbounds |nusw )*"
_BINARY = re.compile(rf"(add|sub|mul|and|or|xor|shl|lshr|ashr) ({_FLAGS})(i\d+) (\S+), (\S+)$")
_CAST = re.compile(rf"(zext|sext|trunc) {_FLAGS}(i\d+) (\S+) to i(\d+)$")
_ICMP = re.compile(r"icmp (?:samesign )?(\w+) (i\d+|ptr) (\S+), (\S+)$")
_SELECT = re.compile(r"select i1 (\S+), (.*)$")
_LOAD = re.compile(r"load (\S+), ptr (.+)$")
_STORE = re.compile(r"store (\S+) (\S+), ptr (.+)$")
_PHI = re.compile(r"phi (i\d+|ptr|\{[^}]*\}) (.*)$")
_CALL = re.compile(
    r"(?:(?:tail|musttail|notail) )?call (?:range\([^)]*\) |noundef |zeroext |signext )*"
    r"(.*?) @([\w.$]+)\((.*)\)$"
)
_INTRINSIC = re.compile(
    r"llvm\.(smin|smax|umin|umax|abs|fshl|fshr|bswap|usub\.sat|uadd\.sat|ctpop|ucmp|scmp)\.i\d+(?:\.i\d+)?$"
)
_TRAILER = re.compile(r"(, ![\w.]+ !\d+)+$")
_DEBUG = re.compile(r", !dbg !(\d+)")
_IGNORED = re.compile(r"llvm\.(lifetime\.|assume|experimental\.noalias)")


class Pointer:
    """A symbolic address that is a constant expression: a global plus a byte offset."""

    __slots__ = ("name", "offset")

    def __init__(self, name: str, offset: int = 0):
        self.name, self.offset = name, offset


class Module:
    """One module of IR text: globals, struct layouts, function bodies as text."""

    def __init__(self, text: str):
        self.layout = Layout(text)
        self.metadata = Metadata(text)
        self.globals: dict[str, tuple[str, str, str]] = {}
        for match in re.finditer(
            rf"^@({_NAME}) = (?:[\w]+ )*?(?:unnamed_addr |local_unnamed_addr )?"
            r"(global|constant) (.*?)(?:, align \d+.*)?$",
            text,
            re.M,
        ):
            kind, init = split_type(match.group(3))
            self.globals[match.group(1)] = (match.group(2), kind, init)
        self.bodies: dict[str, tuple[str, str, str]] = {
            m.group(1): (m.group(2), m.group(4), m.group(3))
            for m in re.finditer(
                rf"^define [^\n]*?@({_NAME})\(([^\n]*)\)([^)\n]*)\{{\n(.*?)^\}}", text, re.S | re.M
            )
        }
        if "@llvm.global_ctors" in text:
            raise HlsError(
                None,
                "a static object needs a constructor at run time; initialise it with constants",
            )

    def location_of(self, name: str) -> Location | None:
        """Where a function is defined."""
        match = re.search(r"!dbg !(\d+)", self.bodies[name][2])
        return self.metadata.subprogram(int(match.group(1))) if match else None


class Reader:
    """Reads one function of a module into a :class:`hlsc.ir.Function`."""

    def __init__(self, module: Module, name: str, label: str):
        self.module = module
        self.function = Function(name, label)
        self.function.location = module.location_of(name)
        self.values: dict[str, Inst] = {}
        self.types: dict[str, str] = {}
        self.loc: Location | None = None
        self.block: Block | None = None

    def read(self) -> Function:
        """Parse arguments and body; every operand is resolved."""
        arguments, body, _ = self.module.bodies[self.function.name]
        for text in split_commas(arguments):
            kind, name = text.split()[0], text.split()[-1]
            kind = (
                "ptr" if name.endswith(".coerce") else kind
            )  # a port, also where clang passes it as an integer
            arg = self.define(name[1:], kind)
            arg.op, arg.width, arg.aux = (
                "arg",
                0 if kind == "ptr" else int(kind[1:]),
                len(self.function.args),
            )
            self.function.args.append(arg)
        for line in _logical_lines(body):
            self.line(line)
        drop_unreachable(self.function)
        missing = [n for n, v in self.values.items() if v.op is None]
        if missing:
            raise HlsError(self.function.location, f"internal: undefined values {missing}")
        return self.function

    # ------------------------------------------------------------------ names and operands
    def define(self, name: str, kind: str) -> Inst:
        inst = self.values.get(name)
        if inst is None:
            inst = self.values[name] = Inst(None, 0, name=name)
        self.types[name] = kind
        return inst

    def operand(self, text: str, kind: str):
        """An integer operand, or the symbolic pointer of a ``ptr`` operand."""
        text = text.strip()
        if kind == "ptr":
            return self.pointer(text)
        width = _token_fields(kind)[1] if kind.startswith("{") else self.width(kind)
        if text.startswith("%"):
            inst = self.values.get(text[1:])
            if inst is None:
                inst = self.values[text[1:]] = Inst(None, width, name=text[1:])
            inst.width = width
            return inst
        if text in ("true", "false"):
            return Const(text == "true", 1)
        if text in ("undef", "poison"):
            return Undefined(width)
        if text == "zeroinitializer":
            return Const(0, width)
        if re.fullmatch(r"-?\d+", text):
            return Const(int(text), width)
        raise HlsError(self.loc, f"operand '{text}' is not supported")

    def width(self, kind: str) -> int:
        match = re.fullmatch(r"i(\d+)", kind)
        if not match:
            raise HlsError(self.loc, _type_message(kind))
        return int(match.group(1))

    def pointer(self, text: str):
        text = re.sub(
            r"^(?:(?:noundef|nonnull|nocapture|readonly|writeonly|noalias|align \d+"
            r"|dereferenceable\(\d+\)) )+",
            "",
            text.strip(),
        )
        if text.startswith("%"):
            inst = self.values.get(text[1:])
            if inst is None:
                inst = self.values[text[1:]] = Inst(None, 0, name=text[1:])
            return inst
        if text.startswith("@"):
            return Pointer(text[1:])
        if match := re.fullmatch(rf"getelementptr {_FLAGS}(?:inrange\([^)]*\) )?\((.*)\)", text):
            return self.constant_gep(match.group(1))
        if text in ("undef", "poison"):
            return Pointer("")
        raise HlsError(
            self.loc,
            f"pointer '{text}' is not supported: it is not tied to one array, stream or port",
        )

    def constant_gep(self, text: str) -> Pointer:
        kind, base, *indices = split_commas(text)
        pointer = self.pointer(base.split(" ", 1)[1])
        offset, terms = self.gep_terms(kind, indices)
        if terms:
            raise HlsError(self.loc, "internal: a constant address with variables")
        return Pointer(pointer.name, pointer.offset + offset)

    def gep_terms(self, kind: str, indices: list[str]):
        """Byte offset and [(operand, byte stride)] of a getelementptr's indices."""
        offset, terms = 0, []
        for number, text in enumerate(indices):
            index_type, value = text.split(" ", 1)
            index = self.operand(value, index_type)
            if number:
                if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
                    kind = match.group(2)
                else:
                    step, kind = self.module.layout.fields(kind)[index.value]
                    offset += step
                    continue
            stride = self.module.layout.measure(kind)[0]
            if isinstance(index, Const):
                offset += stride * index.signed
            else:
                terms.append((index, stride))
        return offset, terms

    # ------------------------------------------------------------------ lines
    def line(self, line: str) -> None:
        if match := re.match(rf"^({_NAME}):", line):
            self.block = self.function.blocks[match.group(1).strip('"')] = Block(
                match.group(1).strip('"')
            )
            return
        if self.block is None:
            self.block = self.function.blocks["entry"] = Block("entry")
        debug = _DEBUG.search(line)
        if debug:
            self.loc = self.module.metadata.location(int(debug.group(1)))
        text = _TRAILER.sub("", line.strip())
        text = re.sub(r" #\d+$", "", text)
        text = re.sub(r", align \d+$", "", text)
        if match := re.match(rf"%({_NAME}) = (.*)$", text):
            self.value(match.group(1), match.group(2))
        else:
            self.statement(text, re.search(r", !llvm\.loop !(\d+)", line))

    def add(self, inst: Inst) -> Inst:
        inst.loc = self.loc
        self.block.insts.append(inst)
        return inst

    def fill(self, name: str, op: str, width: int, args=(), aux=None) -> Inst:
        inst = self.define(name, f"i{width}")
        inst.op, inst.width, inst.args, inst.aux = op, width, list(args), aux
        return self.add(inst)

    def statement(self, text: str, loop) -> None:
        if self.terminator(text):
            if loop:
                self.block.term.loop_location = self.module.metadata.loop(int(loop.group(1)))
            return
        if match := _STORE.match(text):
            kind, value, pointer = match.groups()
            if kind == "ptr":
                raise HlsError(self.loc, "a pointer is stored in memory; only integers can be")
            self.add(
                self.function.make(
                    "store", 0, [self.operand(value, kind), self.pointer(pointer)], hint="st"
                )
            )
            return
        if match := _CALL.match(text):
            self.call(match.group(2), split_commas(match.group(3)))
            return
        raise HlsError(self.loc, f"statement is not supported: {text[:80]}")

    def terminator(self, text: str) -> bool:
        label = rf"label %({_NAME})"
        if match := re.fullmatch(rf"br {label}", text):
            self.block.term = Term("br", [match.group(1).strip('"')])
        elif match := re.fullmatch(rf"br i1 (\S+), {label}, {label}", text):
            targets = [match.group(2).strip('"'), match.group(3).strip('"')]
            self.block.term = Term("cbr", targets, self.operand(match.group(1), "i1"))
        elif match := re.fullmatch(rf"switch (i\d+) (\S+), {label} \[(.*)\]", text):
            kind, value, default, rest = match.groups()
            cases = re.findall(rf"{kind} (\S+), {label}", rest)
            targets = [c[1].strip('"') for c in cases] + [default.strip('"')]
            numbers = [self.operand(c[0], kind).value for c in cases]
            self.block.term = Term("switch", targets, self.operand(value, kind), numbers)
        elif text == "ret void":
            self.block.term = Term("ret")
        elif text == "unreachable":
            self.block.term = Term("unreachable")
        else:
            return False
        return True

    def value(self, name: str, text: str) -> None:
        if match := _BINARY.match(text):
            op, flags, kind, a, b = match.groups()
            args = [self.operand(a, kind), self.operand(b, kind)]
            self.fill(name, op, int(kind[1:]), args, "disjoint" if "disjoint" in flags else None)
        elif match := _CAST.match(text):
            self.fill(
                name,
                match.group(1),
                int(match.group(4)),
                [self.operand(match.group(3), match.group(2))],
            )
        elif match := _ICMP.match(text):
            cc, kind, a, b = match.groups()
            if kind == "ptr":
                raise HlsError(self.loc, "comparison of pointers is not supported")
            self.fill(name, "icmp", 1, [self.operand(a, kind), self.operand(b, kind)], cc)
        elif match := _SELECT.match(text):
            self.select(name, match.group(1), split_commas(match.group(2)))
        elif match := _LOAD.match(text):
            kind, pointer = match.groups()
            if not re.fullmatch(r"i\d+", kind):
                raise HlsError(self.loc, _type_message(kind))
            self.fill(name, "load", int(kind[1:]), [self.pointer(pointer)])
        elif match := _PHI.match(text):
            self.phi(name, match.group(1), match.group(2))
        elif match := re.match(rf"getelementptr {_FLAGS}(.*)$", text):
            kind, base, *indices = split_commas(match.group(1))
            offset, terms = self.gep_terms(kind, indices)
            self.fill(name, "gep", 0, [self.pointer(base.split(" ", 1)[1])], (offset, terms))
        elif match := re.match(r"extractvalue (\{.*\}) (\S+), (\d+)$", text):
            kind, token, number = match.groups()
            offset, width = _token_fields(kind)[0][int(number)]
            self.fill(name, "slice", width, [self.operand(token, kind)], offset)
        elif match := re.match(r"inttoptr i64 %(\S+\.coerce) to ptr$", text):
            self.fill(name, "gep", 0, [self.values[match.group(1)]], (0, []))
        elif match := re.match(r"freeze (i\d+) (\S+)$", text):
            self.fill(
                name,
                "zext",
                int(match.group(1)[1:]),
                [self.operand(match.group(2), match.group(1))],
            )
        elif match := _CALL.match(text):
            self.value_call(name, *match.groups())
        else:
            self.refuse(name, text)

    def refuse(self, name: str, text: str) -> None:
        op = text.split()[0]
        if op in ("sdiv", "udiv", "srem", "urem"):
            sign = "/" if op.endswith("div") else "%"
            raise HlsError(
                self.loc, f"operator {sign} is not supported; use shifts and masks, or a table"
            )
        if op == "alloca":
            raise HlsError(
                self.function.location,
                f"the local array or struct '{name.split('.')[0]}' of process "
                f"{self.function.label} could not be dissolved into "
                "values; declare it static, or index it by constants and unrolled variables only",
            )
        if op in (
            "fadd",
            "fsub",
            "fmul",
            "fdiv",
            "fcmp",
            "sitofp",
            "uitofp",
            "fptosi",
            "fptoui",
            "fpext",
            "fptrunc",
            "fneg",
        ):
            raise HlsError(self.loc, "floating point is not supported; use integers")
        raise HlsError(self.loc, f"LLVM instruction '{op}' is not in the subset")

    def select(self, name: str, cond: str, options: list[str]) -> None:
        (kind, a), (_, b) = split_type(options[0]), split_type(options[1])
        condition = self.operand(cond, "i1")
        if kind == "ptr":
            self.fill(name, "psel", 0, [condition, self.pointer(a), self.pointer(b)])
        else:
            width = self.operand(a, kind).width
            self.fill(
                name, "select", width, [condition, self.operand(a, kind), self.operand(b, kind)]
            )

    def phi(self, name: str, kind: str, text: str) -> None:
        width = 0 if kind == "ptr" else _token_fields(kind)[1] if kind[0] == "{" else int(kind[1:])
        inst = self.fill(name, "pphi" if kind == "ptr" else "phi", width)
        inst.incoming = {}
        for pair in split_commas(text):
            value, block = split_commas(pair[1:-1])
            inst.incoming[block[1:].strip('"')] = self.operand(value, kind)

    # ------------------------------------------------------------------ calls
    def call(self, callee: str, arguments: list[str]) -> None:
        if _IGNORED.match(callee):
            return
        if match := re.match(r"hls\.(wr|mwr)\.\d+$", callee):
            values = [self.typed(a) for a in arguments[1:]]
            concat = self.add(
                self.function.make("concat", sum(v.width for v in values), values, hint="token")
            )
            self.add(
                self.function.make(
                    match.group(1), 0, [concat], aux={"pointer": self.typed(arguments[0])}
                )
            )
        elif match := re.match(r"__hls_(mrq|mwq|mwb)$", callee):
            values = [self.typed(a) for a in arguments[1:]]
            self.add(
                self.function.make(
                    match.group(1), 0, values, aux={"pointer": self.typed(arguments[0])}
                )
            )
        elif match := re.match(r"__hls_(array|dependence|pipeline|stream_depth)$", callee):
            values = [self.typed(a) for a in arguments]
            self.add(self.function.make("mark", 0, aux=(match.group(1), values)))
        elif re.match(r"llvm\.mem(cpy|move)", callee):
            num_bytes = self.typed(arguments[2])
            args = [self.typed(arguments[0]), self.typed(arguments[1])]
            if not isinstance(num_bytes, Const):
                raise HlsError(self.loc, "a copy of variable length is not supported")
            self.add(self.function.make("memcpy", 0, args, aux=num_bytes.value))
        else:
            self.refuse_call(callee)

    def value_call(self, name: str, result: str, callee: str, arguments: str) -> None:
        values = split_commas(arguments)
        if match := re.match(r"hls\.(rd|mrd)\.\d+$", callee):
            self.fill(
                name,
                match.group(1),
                _token_fields(result)[1],
                [],
                {"pointer": self.typed(values[0])},
            )
        elif callee == "__hls_unspecified":
            open_value = Undefined(self.width(result))
            self.fill(name, "select", open_value.width, [Const(1, 1), open_value, open_value])
        elif match := _INTRINSIC.match(callee):
            width = int(re.search(r"i(\d+)$", result).group(1))
            args = [self.typed(v) for v in values]
            self.fill(name, match.group(1), width, args)
        else:
            self.refuse_call(callee)

    def refuse_call(self, callee: str) -> None:
        if callee in self.module.bodies:
            raise HlsError(self.loc, "a recursive function cannot become hardware")
        if callee.startswith("llvm."):
            raise HlsError(self.loc, f"LLVM intrinsic '{callee}' is not in the subset")
        raise HlsError(self.loc, f"the function {callee} is not defined in this source")

    def typed(self, text: str):
        """An operand with its type and attributes in front."""
        kind, rest = split_type(text)
        return self.operand(rest.split()[-1] if kind != "ptr" else rest, kind)


def _token_fields(kind: str) -> tuple[list[tuple[int, int]], int]:
    """[(bit offset, bits)] of the scalars of a token type ``{ i8, i16 }``, and its total width."""
    fields, offset = [], 0
    for text in split_commas(kind.strip("{} ")):
        fields.append((offset, int(text[1:])))
        offset += int(text[1:])
    return fields, offset


def _type_message(kind: str) -> str:
    if kind in ("float", "double", "half", "x86_fp80", "bfloat"):
        return "floating point is not supported; use integers"
    if kind == "ptr":
        return "a pointer variable is not tied to one array, stream or port"
    return f"type {kind} is not supported"


def drop_unreachable(function: Function) -> None:
    """Take away the edges that the optimiser proved impossible (a complete switch's default)."""
    blocks = function.blocks
    dead = {n for n, b in blocks.items() if b.term.kind == "unreachable"}
    while dead:
        if function.entry in dead:
            raise HlsError(
                function.location, f"process {function.label} always runs into undefined behaviour"
            )
        for name in dead:
            del blocks[name]
        for block in blocks.values():
            block.term = _without(block.term, dead)
            for inst in block.insts:
                if inst.incoming:
                    inst.incoming = {b: v for b, v in inst.incoming.items() if b not in dead}
        dead = {n for n, b in blocks.items() if b.term.kind == "unreachable"}


def _without(term: Term, dead: set[str]) -> Term:
    """The terminator without the targets in ``dead``."""
    if not dead.intersection(term.targets):
        return term
    if term.kind == "switch":
        cases = [(v, t) for v, t in zip(term.cases, term.targets, strict=False) if t not in dead]
        default = term.targets[-1]
        if default in dead and cases:
            default = cases.pop()[1]
        if default in dead:
            return Term("unreachable")
        if not cases:
            return Term("br", [default])
        return Term("switch", [t for _, t in cases] + [default], term.cond, [v for v, _ in cases])
    alive = [t for t in term.targets if t not in dead]
    return Term("br", alive, loop_location=term.loop_location) if alive else Term("unreachable")


def _logical_lines(body: str):
    """Lines without comments; a switch's cases are joined to one line."""
    pending = None
    for raw in body.split("\n"):
        line = raw.split(" ;", 1)[0].rstrip() if '"' not in raw else raw.rstrip()
        if line.startswith(";") or not line.strip():
            continue
        if pending is not None:
            pending += " " + line.strip()
            if line.strip().startswith("]"):
                yield pending
                pending = None
        elif line.lstrip().startswith("switch ") and line.endswith("["):
            pending = line.strip()
        else:
            yield line
