"""The compiler's own intermediate form: instructions that point at their operands, in blocks, in
one function.

An operand is an :class:`Inst` (its result) or a :class:`Const`. Widths are in bits; every value is
a bit vector, signs belong to operations. After if-conversion a pipelined loop is a single block
whose ``loop`` field is set.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import Location

# Operations without side effects whose result depends on their operands only.
PURE = frozenset(
    "add sub mul and or xor shl lshr ashr icmp select zext sext trunc slice concat "
    "smin smax umin umax".split()
)
# Operations that can stall the process: they talk to a stream or to an AXI port.
BLOCKING = frozenset("rd wr mrq mrd mwq mwr mwb".split())
# Operations that must execute exactly when the source does.
EFFECTS = BLOCKING | {"st", "out"}


class Const:
    """A constant of a given width; ``value`` is kept unsigned."""

    __slots__ = ("value", "width")

    def __init__(self, value: int, width: int):
        self.value = value & ((1 << width) - 1)
        self.width = width

    @property
    def signed(self) -> int:
        """The value read as two's complement."""
        return self.value - (1 << self.width) if self.value >> (self.width - 1) & 1 else self.value

    def __eq__(self, other):
        return isinstance(other, Const) and other.value == self.value and other.width == self.width

    def __hash__(self):
        return hash((self.value, self.width))

    def __repr__(self):
        return f"{self.width}'d{self.value}"


class Undefined(Const):
    """A value that the source leaves open (a variable that no path has set): 0 where it is used,
    and nothing that a select has to choose.
    """

    def __init__(self, width: int):
        super().__init__(0, width)


class Inst:
    """One operation and its result.

    ``args`` are operands, ``pred`` is None or a 1-bit operand that enables the operation, ``guard``
    the same condition as a BDD node, ``asked`` the condition of an operation that runs
    speculatively, ``incoming`` the phi's operand per predecessor block name, ``aux`` what only this
    operation needs. The schedule sets ``time`` (cycle of issue), ``latency`` (cycles until the
    result can be used) and ``ready_ns``.
    """

    __slots__ = (
        "op",
        "width",
        "args",
        "pred",
        "asked",
        "guard",
        "incoming",
        "aux",
        "loc",
        "name",
        "block",
        "time",
        "latency",
        "ready_ns",
    )

    def __init__(
        self, op: str, width: int, args=(), *, aux=None, loc: Location | None = None, name: str = ""
    ):
        self.op = op
        self.width = width
        self.args = list(args)
        self.pred = None
        self.asked = None
        self.guard = None
        self.incoming = None
        self.aux = aux
        self.loc = loc
        self.name = name
        self.block = None
        self.time = 0
        self.latency = 0
        self.ready_ns = 0.0

    def operands(self):
        """Everything that is read when the operation issues (a phi reads nothing then)."""
        return self.args if self.pred is None else [*self.args, self.pred]

    def __repr__(self):
        args = ", ".join(a.name if isinstance(a, Inst) else repr(a) for a in self.args)
        return f"%{self.name} = {self.op}.{self.width} {args}"


@dataclass
class Term:
    """How a block ends: ``br`` (one target), ``cbr`` (taken, else), ``switch`` (cases, default
    last), ``ret`` or
    ``loop`` (stay while cond holds, else targets[0])."""

    kind: str
    targets: list[str] = field(default_factory=list)
    cond: Inst | Const | None = None
    cases: list[int] = field(default_factory=list)
    loop_location: Location | None = None  # of the loop statement that this branch goes back in


class Block:
    """A basic block, or after if-conversion a whole pipelined loop (``loop`` set)."""

    def __init__(self, name: str):
        self.name = name
        self.insts: list[Inst] = []
        self.term: Term | None = None
        self.pipeline_index: tuple[int, int] | None = None  # pragma number, requested II
        self.loop: LoopInfo | None = None
        self.num_cycles = 0


@dataclass
class LoopInfo:
    """A pipelined loop: what was asked for and what the scheduler found."""

    label: str
    location: Location
    target_ii: int
    dependences: dict = field(
        default_factory=dict
    )  # array name -> declared distance, 0: none at all
    ii: int = 0
    depth: int = 0
    why: str = ""
    num_ops: int = 0
    bdd: object = None


class Function:
    """One process: arguments, blocks in textual order (the first is the entry)."""

    def __init__(self, name: str, label: str):
        self.name = name
        self.label = label
        self.args: list[Inst] = []
        self.blocks: dict[str, Block] = {}
        self.num_fresh = 0
        self.location: Location | None = None

    @property
    def entry(self) -> str:
        return next(iter(self.blocks))

    def make(self, op, width, args=(), *, aux=None, loc=None, hint="t") -> Inst:
        """A new instruction with a unique name; the caller places it."""
        self.num_fresh += 1
        return Inst(op, width, args, aux=aux, loc=loc, name=f"{hint}.{self.num_fresh}")

    def replace(self, mapping: dict) -> None:
        """Rewrite every operand found in ``mapping`` (Inst -> operand), following chains."""
        if not mapping:
            return

        def get(operand):
            while operand in mapping:
                operand = mapping[operand]
            return operand

        for block in self.blocks.values():
            for inst in block.insts:
                inst.args = [get(a) for a in inst.args]
                if inst.pred is not None:
                    inst.pred = get(inst.pred)
                if inst.incoming:
                    inst.incoming = {k: get(v) for k, v in inst.incoming.items()}
            if block.term.cond is not None:
                block.term.cond = get(block.term.cond)


def successors(term: Term) -> list[str]:
    """Names of the blocks that can follow."""
    return term.targets
