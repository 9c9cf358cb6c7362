"""SystemVerilog text of expressions: literals, ranges, one operation on named operands."""

from __future__ import annotations

import re

from .errors import HlsError
from .ir import Const, Inst

_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "gt": ">", "ge": ">=", "lt": "<", "le": "<="}


def clean(name: str) -> str:
    """A C++ or LLVM name as an identifier."""
    return re.sub(r"\W", "_", name)


def literal(value: int, width: int) -> str:
    return f"{width}'h{value & ((1 << width) - 1):x}"


def vector(width: int) -> str:
    """The range of a declaration; one bit has none."""
    return f"[{width - 1}:0] " if width > 1 else ""


def low(text: str, have: int, want: int) -> str:
    """The low bits of a named signal."""
    if have == want:
        return text
    return f"{text}[{want - 1}:0]" if want > 1 else f"{text}[0]"


def extend(text: str, have: int, want: int, signed: bool) -> str:
    """Widen a named signal or literal."""
    if have == want:
        return text
    if not signed:
        return f"{{{want - have}'d0, {text}}}"
    sign = f"{text}[{have - 1}]" if have > 1 else text
    return f"{{{{{want - have}{{{sign}}}}}, {text}}}"


def expression(inst: Inst, args: list[str]) -> str:
    """One operation; ``args`` are names or literals of the operands' own widths."""
    op, width = inst.op, inst.width
    if op in _INFIX:
        return f"{args[0]} {_INFIX[op]} {args[1]}"
    if op in ("zext", "sext"):
        return extend(args[0], inst.args[0].width, width, op == "sext")
    if op == "trunc":
        return _part(inst.args[0], args[0], 0, width)
    if op == "slice":
        return _part(inst.args[0], args[0], inst.aux, width)
    if op == "concat":
        return "{" + ", ".join(reversed(args)) + "}"
    if op == "select":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op == "icmp":
        sign, infix = inst.aux[0], _COMPARE[inst.aux[-2:]]
        if sign == "s":
            return f"$signed({args[0]}) {infix} $signed({args[1]})"
        return f"{args[0]} {infix} {args[1]}"
    if op in ("smin", "smax") and (text := _saturation(inst, args)):
        return text
    if op in ("smin", "smax", "umin", "umax"):
        infix = "<" if op.endswith("min") else ">"
        a, b = (f"$signed({x})" if op[0] == "s" else x for x in args)
        return f"({a} {infix} {b}) ? {args[0]} : {args[1]}"
    if op in ("shl", "lshr", "ashr"):
        amount = str(inst.args[1].value) if isinstance(inst.args[1], Const) else args[1]
        infix = {"shl": "<<", "lshr": ">>", "ashr": ">>>"}[op]
        left = f"$signed({args[0]})" if op == "ashr" else args[0]
        text = f"{left} {infix} {amount}"
        return f"$unsigned({text})" if op == "ashr" else text
    if op == "mul":
        return product(inst, args)
    raise HlsError(inst.loc, f"internal: no Verilog for {op}")


def _saturation(inst: Inst, args: list[str]) -> str | None:
    """The limits 2**k - 1 and -2**k need no comparison: the bits from k on are all like the sign,
    or they are not.
    """
    limit, top = inst.args[1], inst.width - 1
    if not isinstance(limit, Const):
        return None
    size = limit.signed if inst.op == "smin" else -limit.signed - 1
    bits = size.bit_length()
    if size < 0 or size & (size + 1) or bits >= top or isinstance(inst.args[0], Const):
        return None
    value = args[0]
    above = f"{value}[{top - 1}:{bits}]"
    too_large, too_small = f"!{value}[{top}] & |{above}", f"{value}[{top}] & !(&{above})"
    outside = too_large if inst.op == "smin" else too_small
    return f"({outside}) ? {args[1]} : {value}"


def _part(source, text: str, start: int, width: int) -> str:
    if isinstance(source, Const):
        return literal(source.value >> start, width)
    if source.width == 1:
        return text
    return f"{text}[{start}]" if width == 1 else f"{text}[{start + width - 1}:{start}]"


def product(inst: Inst, args: list[str]) -> str:
    """A multiplication of factors that may be narrower than the product."""
    signs = inst.aux or (False, False)
    factors = []
    for text, operand, signed in zip(args, inst.args, signs, strict=False):
        if isinstance(operand, Const):
            factors.append(literal(operand.signed if signed else operand.value, inst.width))
        else:
            factors.append(extend(text, operand.width, inst.width, signed))
    return f"{factors[0]} * {factors[1]}"


def priority_mux(choices: list[tuple[str, str]], width: int) -> str:
    """The value whose enable is set; the last one needs none."""
    if not choices:
        return literal(0, width)
    text = choices[-1][1]
    for enable, value in reversed(choices[:-1]):
        text = (
            f"{enable} ? {value} : {text}"
            if text == choices[-1][1]
            else f"{enable} ? {value} : ({text})"
        )
    return text


def any_of(enables: list[str]) -> str:
    """Disjunction of 1-bit expressions."""
    unique = list(dict.fromkeys(enables))
    if not unique:
        return "1'b0"
    return unique[0] if len(unique) == 1 else "(" + " | ".join(unique) + ")"


def connect(module: str, instance: str, params: dict, ports: dict) -> str:
    """A module instance."""
    head = module
    if params:
        head += " #(" + ", ".join(f".{k}({v})" for k, v in params.items()) + ")"
    return f"{head} {instance} (" + ", ".join(f".{k}({v})" for k, v in ports.items()) + ");"
