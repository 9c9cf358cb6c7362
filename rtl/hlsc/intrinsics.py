"""LLVM intrinsics as plain operations: absolute value, funnel shifts, byte swap, saturation, and so
on.
"""

from __future__ import annotations

from .errors import HlsError
from .ir import Const, Inst


class Intrinsics:
    """Handlers for :class:`hlsc.lower.Lowering`, which provides ``emit``."""

    def on_abs(self, inst: Inst):
        value = inst.args[0]
        negative = self.emit("icmp", 1, [value, Const(0, inst.width)], "slt")
        return self.emit(
            "select",
            inst.width,
            [negative, self.emit("sub", inst.width, [Const(0, inst.width), value]), value],
        )

    def on_fshl(self, inst: Inst):
        return self._funnel(inst, left=True)

    def on_fshr(self, inst: Inst):
        return self._funnel(inst, left=False)

    def _funnel(self, inst: Inst, left: bool):
        """fshl(a, b, s): the high half of (a:b) << (s mod w); fshr: the low half of (a:b) >> (s mod
        w).
        """
        high, low, amount = inst.args
        width = inst.width
        if width & (width - 1):
            raise HlsError(
                inst.loc,
                f"a rotate or funnel shift of {width} bits is not supported; use a power of two",
            )
        masked = self.emit("and", width, [amount, Const(width - 1, width)])
        wide = self.emit("concat", 2 * width, [low, high])
        by = self.emit("zext", 2 * width, [masked])
        shifted = self.emit("shl" if left else "lshr", 2 * width, [wide, by])
        return self.emit("slice", width, [shifted], width if left else 0)

    def on_bswap(self, inst: Inst):
        parts = [self.emit("slice", 8, [inst.args[0]], at) for at in range(0, inst.width, 8)]
        return self.emit("concat", inst.width, parts[::-1])

    def on_usub_sat(self, inst: Inst):
        a, b = inst.args
        under = self.emit("icmp", 1, [a, b], "ult")
        return self.emit(
            "select",
            inst.width,
            [under, Const(0, inst.width), self.emit("sub", inst.width, [a, b])],
        )

    def on_uadd_sat(self, inst: Inst):
        a, b = inst.args
        total = self.emit("add", inst.width, [a, b])
        over = self.emit("icmp", 1, [total, a], "ult")
        return self.emit("select", inst.width, [over, Const(-1, inst.width), total])

    def on_ctpop(self, inst: Inst):
        total = Const(0, inst.width)
        for at in range(inst.width):
            bit = self.emit("slice", 1, [inst.args[0]], at)
            wide = bit if inst.width == 1 else self.emit("zext", inst.width, [bit])
            total = self.emit("add", inst.width, [total, wide])
        return total

    def on_ucmp(self, inst: Inst):
        return self._three_way(inst, "u")

    def on_scmp(self, inst: Inst):
        return self._three_way(inst, "s")

    def _three_way(self, inst: Inst, sign: str):
        less = self.emit("icmp", 1, inst.args, sign + "lt")
        more = self.emit("icmp", 1, inst.args, sign + "gt")
        rest = self.emit("select", inst.width, [more, Const(1, inst.width), Const(0, inst.width)])
        return self.emit("select", inst.width, [less, Const(-1, inst.width), rest])
