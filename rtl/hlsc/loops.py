"""Control flow: reverse post-order, predecessors, dominators, natural loops."""

from __future__ import annotations

from .ir import Function, successors


class Flow:
    """The control-flow graph of a function; unreachable blocks are removed first."""

    def __init__(self, function: Function):
        self.function = function
        self.order = self._reverse_post_order()
        self.position = {name: k for k, name in enumerate(self.order)}
        for name in [n for n in function.blocks if n not in self.position]:
            del function.blocks[name]
        self.preds: dict[str, list[str]] = {name: [] for name in self.order}
        for name in self.order:
            for target in dict.fromkeys(successors(function.blocks[name].term)):
                self.preds[target].append(name)
        self.idom = self._immediate_dominators()
        self.loops = self._natural_loops()

    def _reverse_post_order(self) -> list[str]:
        blocks, entry = self.function.blocks, self.function.entry
        order, seen, stack = [], {entry}, [(entry, iter(successors(blocks[entry].term)))]
        while stack:
            name, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(successors(blocks[target].term))))
                    break
            else:
                order.append(name)
                stack.pop()
        return order[::-1]

    def _immediate_dominators(self) -> dict[str, str]:
        """Cooper, Harvey and Kennedy's iteration."""
        entry, position = self.order[0], self.position
        idom, changed = {entry: entry}, True
        while changed:
            changed = False
            for name in self.order[1:]:
                new = None
                for pred in self.preds[name]:
                    if pred in idom:
                        new = pred if new is None else self._meet(idom, position, pred, new)
                if idom.get(name) != new:
                    idom[name], changed = new, True
        return idom

    @staticmethod
    def _meet(idom, position, a, b):
        while a != b:
            while position[a] > position[b]:
                a = idom[a]
            while position[b] > position[a]:
                b = idom[b]
        return a

    def dominates(self, a: str, b: str) -> bool:
        while self.position[b] > self.position[a]:
            b = self.idom[b]
        return a == b

    def _natural_loops(self) -> dict[str, set[str]]:
        """Header -> blocks of the loop."""
        loops: dict[str, set[str]] = {}
        for name in self.order:
            for header in successors(self.function.blocks[name].term):
                if not self.dominates(header, name):
                    continue
                body, stack = loops.setdefault(header, {header}), [name]
                while stack:
                    block = stack.pop()
                    if block not in body:
                        body.add(block)
                        stack.extend(self.preds[block])
        return loops

    def innermost(self, name: str) -> str | None:
        """Header of the innermost loop around a block."""
        around = [(len(body), header) for header, body in self.loops.items() if name in body]
        return min(around)[1] if around else None
