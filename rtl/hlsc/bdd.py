"""Small binary decision diagrams for the predicates of if-conversion.

A node is FALSE, TRUE or an integer handle of (level, low, high); equal functions have equal
handles. A variable is a 1-bit operand of the program. Facts that the variables cannot express
themselves (``x == 1`` excludes ``x == 2``) are kept as a care set.
"""

from __future__ import annotations

from .ir import Const

FALSE, TRUE = 0, 1


class Bdd:
    def __init__(self):
        self.nodes = [(1 << 30, 0, 0), (1 << 30, 1, 1)]
        self.unique: dict[tuple, int] = {}
        self.operands: list = []
        self.levels: dict = {}
        self.memo: dict[tuple, int] = {}
        self.care = TRUE
        self.compares: dict = {}

    def make(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (level, low, high)
        node = self.unique.get(key)
        if node is None:
            node = self.unique[key] = len(self.nodes)
            self.nodes.append(key)
        return node

    def variable(self, operand) -> int:
        """The function "this operand is 1"."""
        if isinstance(operand, Const):
            return TRUE if operand.value else FALSE
        level = self.levels.get(operand)
        if level is None:
            level = self.levels[operand] = len(self.operands)
            self.operands.append(operand)
            self._learn(operand, level)
        return self.make(level, FALSE, TRUE)

    def _learn(self, operand, level: int) -> None:
        """Comparisons of one value with different constants exclude each other."""
        if (
            operand.op != "icmp"
            or operand.aux not in ("eq", "ne")
            or not isinstance(operand.args[1], Const)
        ):
            return
        equal = (
            self.make(level, FALSE, TRUE) if operand.aux == "eq" else self.make(level, TRUE, FALSE)
        )
        others = self.compares.setdefault(operand.args[0], [])
        if len(others) < 16:
            for other, constant in others:
                if constant != operand.args[1].value:
                    self.care = self.and_(self.care, self.not_(self.and_(equal, other)))
        others.append((equal, operand.args[1].value))

    def ite(self, f: int, g: int, h: int) -> int:
        """If f then g else h."""
        if f == TRUE or g == h:
            return g
        if f == FALSE:
            return h
        if g == TRUE and h == FALSE:
            return f
        key = (f, g, h)
        found = self.memo.get(key)
        if found is not None:
            return found
        nodes = self.nodes
        level = min(nodes[f][0], nodes[g][0], nodes[h][0])
        f0, f1 = self._cofactors(f, level)
        g0, g1 = self._cofactors(g, level)
        h0, h1 = self._cofactors(h, level)
        result = self.make(level, self.ite(f0, g0, h0), self.ite(f1, g1, h1))
        self.memo[key] = result
        return result

    def _cofactors(self, node: int, level: int) -> tuple[int, int]:
        top, low, high = self.nodes[node]
        return (low, high) if top == level else (node, node)

    def and_(self, f: int, g: int) -> int:
        return self.ite(f, g, FALSE)

    def or_(self, f: int, g: int) -> int:
        return self.ite(f, TRUE, g)

    def not_(self, f: int) -> int:
        return self.ite(f, FALSE, TRUE)

    def exclusive(self, f: int | None, g: int | None) -> bool:
        """Can both conditions never hold at once? None stands for "always"."""
        if f is None or g is None:
            return False
        return self.and_(self.and_(f, g), self.care) == FALSE

    def restrict(self, f: int, care: int) -> int:
        """A function that equals f wherever ``care`` holds, and is usually simpler (Coudert and
        Madre).
        """
        if care == FALSE:
            return FALSE
        if care == TRUE or f <= TRUE:
            return f
        key = ("r", f, care)
        found = self.memo.get(key)
        if found is not None:
            return found
        level = min(self.nodes[f][0], self.nodes[care][0])
        f0, f1 = self._cofactors(f, level)
        c0, c1 = self._cofactors(care, level)
        if c0 == FALSE:
            result = self.restrict(f1, c1)
        elif c1 == FALSE:
            result = self.restrict(f0, c0)
        elif f0 == f1:
            result = self.restrict(f, self.or_(c0, c1))
        else:
            result = self.make(level, self.restrict(f0, c0), self.restrict(f1, c1))
        self.memo[key] = result
        return result
