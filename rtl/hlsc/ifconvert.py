"""If-conversion: the body of a pipelined loop becomes one block of predicated operations.

Every block gets the condition under which it runs as a BDD over the branch conditions. Operations
with effects are predicated, phis become selects, the back edge's condition becomes the loop's
"stay" condition.
"""

from __future__ import annotations

from .bdd import FALSE, TRUE, Bdd
from .errors import HlsError
from .ir import EFFECTS, Block, Const, Function, Inst, LoopInfo, Term
from .loops import Flow


def convert_loops(function: Function, pragmas, dependences: dict) -> None:
    """Convert every loop that carries a pipeline mark."""
    marked = [b.name for b in function.blocks.values() if b.pipeline_index is not None]
    for name in marked:
        if name not in function.blocks:
            continue
        block = function.blocks[name]
        flow = Flow(function)
        if name not in function.blocks:
            continue
        pragma = pragmas[block.pipeline_index[0]]
        header = _loop_of(function, flow, name, pragma)
        if header is None:
            continue  # the loop runs at most once and was dissolved
        info = LoopInfo(function.label, pragma.location, block.pipeline_index[1])
        if info.target_ii < 1:
            raise HlsError(
                pragma.location,
                f"pipeline II={info.target_ii}: the initiation interval must be at least 1",
            )
        info.dependences = dependences.get(block.pipeline_index[0], {})
        _Converter(function, flow, header, info).run()


def _loop_of(function: Function, flow: Flow, name: str, pragma) -> str | None:
    """Header of the loop that the pragma was written in."""
    for header, body in sorted(flow.loops.items(), key=lambda item: len(item[1])):
        if name in body:
            latches = [
                function.blocks[b].term for b in body if header in function.blocks[b].term.targets
            ]
            if any(t.loop_location in (None, pragma.loop_location) for t in latches):
                return header
    return None


class _Converter:
    def __init__(self, function: Function, flow: Flow, header: str, info: LoopInfo):
        self.function, self.flow, self.header, self.info = function, flow, header, info
        self.body = flow.loops[header]
        self.bdd = Bdd()
        self.block = Block(header)
        self.conds: dict[str, int] = {header: TRUE}
        self.gates: dict[int, object] = {FALSE: Const(0, 1), TRUE: Const(1, 1)}
        self.edges: dict[str, list[tuple[str, int]]] = {}  # target -> [(source, condition)]
        self.stay: list[tuple[str, int]] = []
        self.exits: dict[str, list[tuple[str, int]]] = {}
        self.replaced: dict = {}

    def run(self) -> None:
        self._refuse_inner_loops()
        for name in sorted(self.body, key=self.flow.position.get):
            self._block(name)
        if len(self.stay) != 1 or len(self.exits) != 1:
            if not self.exits:
                raise HlsError(self.info.location, "the pipelined loop has no exit")
            raise HlsError(
                self.info.location,
                f"the pipelined loop has {len(self.exits)} places to go on after it and "
                f"{len(self.stay)} ways back; it "
                "must have one exit (use a flag instead of break, return or goto)",
            )
        self._finish()

    def _refuse_inner_loops(self) -> None:
        for other in self.flow.loops:
            if other != self.header and other in self.body:
                inner = self.function.blocks[other]
                loc = next((i.loc for i in inner.insts if i.loc), self.info.location)
                raise HlsError(
                    loc,
                    "a loop inside of a pipelined loop was not unrolled; give it #pragma HLS "
                    "unroll and a constant number of "
                    "iterations",
                )

    def _block(self, name: str) -> None:
        block, bdd = self.function.blocks[name], self.bdd
        if name != self.header:
            condition = FALSE
            for _, edge in self.edges.get(name, []):
                condition = bdd.or_(condition, edge)
            self.conds[name] = condition
        condition = self.conds[name]
        for inst in block.insts:
            if inst.op == "phi" and name != self.header:
                self._select(inst, name)
                continue
            if inst.op in EFFECTS or inst.op == "ld":
                self._predicate(inst, condition)
            self.block.insts.append(inst)
        for target, edge in self._edges(block):
            edge = bdd.and_(condition, edge)
            if edge == FALSE:
                continue
            if target == self.header:
                self._merge(self.stay, name, edge)
            elif target in self.body:
                self._merge(self.edges.setdefault(target, []), name, edge)
            else:
                self._merge(self.exits.setdefault(target, []), name, edge)

    def _merge(self, edges: list, source: str, condition: int) -> None:
        for k, (other, old) in enumerate(edges):
            if other == source:
                edges[k] = (source, self.bdd.or_(old, condition))
                return
        edges.append((source, condition))

    def _predicate(self, inst: Inst, condition: int) -> None:
        if inst.pred is not None:
            own = self.bdd.variable(self.current(inst.pred))
            condition = self.bdd.and_(condition, own)
        if condition != TRUE:
            inst.guard = condition
            inst.pred = self.gate(condition)

    def _edges(self, block: Block) -> list[tuple[str, int]]:
        term, bdd = block.term, self.bdd
        if term.kind == "br":
            return [(term.targets[0], TRUE)]
        if term.kind == "cbr":
            taken = bdd.variable(self.current(term.cond))
            return [(term.targets[0], taken), (term.targets[1], bdd.not_(taken))]
        if term.kind == "ret":
            raise HlsError(self.info.location, "return out of a pipelined loop")
        out, rest = [], TRUE
        for value, target in zip(term.cases, term.targets, strict=False):
            hit = self.emit(
                "icmp", 1, [self.current(term.cond), Const(value, term.cond.width)], "eq"
            )
            case = bdd.variable(hit)
            out.append((target, bdd.and_(rest, case)))
            rest = bdd.and_(rest, bdd.not_(case))
        return [*out, (term.targets[-1], rest)]

    def emit(self, op, width, args, aux=None) -> Inst:
        inst = self.function.make(op, width, args, aux=aux, loc=self.info.location, hint="p")
        self.block.insts.append(inst)
        return inst

    def gate(self, node: int):
        """The operand that computes a condition."""
        if node in self.gates:
            return self.gates[node]
        level, low, high = self.bdd.nodes[node]
        variable = self.bdd.operands[level]
        if low == FALSE:
            result = variable if high == TRUE else self.emit("and", 1, [variable, self.gate(high)])
        elif high == TRUE:
            result = self.emit("or", 1, [variable, self.gate(low)])
        elif high == FALSE:
            inverse = self._inverse(level)
            result = inverse if low == TRUE else self.emit("and", 1, [inverse, self.gate(low)])
        elif low == TRUE:
            result = self.emit("or", 1, [self._inverse(level), self.gate(high)])
        else:
            result = self.emit("select", 1, [variable, self.gate(high), self.gate(low)])
        self.gates[node] = result
        return result

    def _inverse(self, level: int):
        node = self.bdd.make(level, TRUE, FALSE)
        if node not in self.gates:
            self.gates[node] = self.emit("xor", 1, [self.bdd.operands[level], Const(1, 1)])
        return self.gates[node]

    def _choose(self, choices: list[tuple[int, object]], width: int, care: int):
        """Value of the one choice whose condition holds; conditions are only meant inside of
        ``care``.
        """
        result = choices[-1][1]
        for condition, value in reversed(choices[:-1]):
            if value is result or (isinstance(value, Const) and value == result):
                continue
            gate = self.gate(self.bdd.restrict(condition, care))
            if isinstance(gate, Const):
                result = value if gate.value else result
            else:
                result = self.emit("select", width, [gate, value, result])
        return result

    def _select(self, phi: Inst, name: str) -> None:
        choices = [
            (edge, self.current(phi.incoming[source])) for source, edge in self.edges.get(name, [])
        ]
        value = (
            self._choose(choices, phi.width, self.conds[name]) if choices else Const(0, phi.width)
        )
        self.replaced[phi] = value

    def current(self, operand):
        while operand in self.replaced:
            operand = self.replaced[operand]
        return operand

    def _finish(self) -> None:
        (latch, stay), (target, exits) = self.stay[0], next(iter(self.exits.items()))
        cond = self.gate(stay)
        exit_block = self.function.blocks[target]
        for phi in exit_block.insts:
            if phi.op == "phi":
                choices = [(edge, self.current(phi.incoming.pop(source))) for source, edge in exits]
                care = self.bdd.not_(stay)
                phi.incoming[self.header] = self._choose(choices, phi.width, care)
        for phi in self.block.insts:
            if phi.op == "phi":
                phi.incoming = {("latch" if b == latch else b): v for b, v in phi.incoming.items()}
        self.block.term = Term("loop", [target], cond)
        self.block.loop = self.info
        self.block.pipeline_index = None
        for name in self.body:
            del self.function.blocks[name]
        self._insert()
        self.function.replace(self.replaced)
        self.info.bdd = self.bdd

    def _insert(self) -> None:
        """Put the block where the loop was; the entry block stays first."""
        blocks = dict(self.function.blocks)
        self.function.blocks.clear()
        if self.flow.order[0] in self.body:
            self.function.blocks[self.header] = self.block
            self.function.blocks.update(blocks)
        else:
            self.function.blocks.update(blocks)
            self.function.blocks[self.header] = self.block
