"""Resolves pointers: every load and store becomes an access of one bank, every port or stream
operation names it.

After this pass there are no pointers left. Addresses are taken apart by :mod:`hlsc.affine`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .affine import expand
from .errors import HlsError
from .intrinsics import Intrinsics
from .ir import BLOCKING, Const, Function, Inst
from .llparse import Module, Pointer
from .memory import Access, StaticArray


@dataclass
class Place:
    """A resolved pointer: a global's name or an argument's number, a byte offset, and byte
    coefficients.
    """

    base: str | int
    offset: int
    terms: dict

    def shifted(self, num_bytes: int) -> Place:
        return Place(self.base, self.offset + num_bytes, self.terms)


@dataclass
class Choice:
    """A pointer selected at run time."""

    cond: object
    a: object
    b: object


class Lowering(Intrinsics):
    """Lowers one process; :meth:`scan` first (for all processes), then :meth:`run`."""

    def __init__(self, function: Function, module: Module, arrays: dict[str, StaticArray]):
        self.function, self.module, self.arrays = function, module, arrays
        self.places: dict[Inst, object] = {}
        self.resolving: set[Inst] = set()
        self.halves: dict[
            Inst, list[Inst]
        ] = {}  # shifted copies of a value, placed right behind it
        self.out: list[Inst] = []
        self.loc = None

    # ------------------------------------------------------------------ pointers
    def resolve(self, pointer):
        """Symbolic pointer -> Place or Choice."""
        if isinstance(pointer, Pointer):
            return Place(pointer.name, pointer.offset, {})
        if pointer.op == "arg":
            return Place(pointer.aux, 0, {})
        if pointer not in self.places:
            if pointer in self.resolving:
                raise HlsError(
                    pointer.loc,
                    "a pointer that moves from iteration to iteration; use an index instead",
                )
            self.resolving.add(pointer)
            self.places[pointer] = self._resolve(pointer)
            self.resolving.discard(pointer)
        return self.places[pointer]

    def _resolve(self, inst: Inst):
        if inst.op == "gep":
            return self._gep(self.resolve(inst.args[0]), *inst.aux)
        if inst.op == "psel":
            return Choice(inst.args[0], self.resolve(inst.args[1]), self.resolve(inst.args[2]))
        if inst.op == "pphi":
            return self._phi(inst)
        raise HlsError(
            inst.loc or self.loc, "a pointer variable is not tied to one array, stream or port"
        )

    def _gep(self, base, offset: int, indices):
        if isinstance(base, Choice):
            return Choice(
                base.cond, self._gep(base.a, offset, indices), self._gep(base.b, offset, indices)
            )
        terms, total = dict(base.terms), base.offset + offset
        for index, stride in indices:
            constant, sums = expand(index, self.halve)
            total += constant * stride
            for value, coef in sums.items():
                terms[value] = terms.get(value, 0) + coef * stride
        return Place(base.base, total, {v: k for v, k in terms.items() if k})

    def halve(self, value: Inst, zeros: int) -> Inst:
        """The value without its low bits, which are 0, so that an address can be divided."""
        copies = self.halves.setdefault(value, [])
        if not copies:
            copies.append(
                self.function.make(
                    "lshr", value.width, [value, Const(zeros, value.width)], loc=value.loc
                )
            )
        return copies[0]

    def _phi(self, inst: Inst):
        """Phi of pointers: phis of the indices, and one of a selector if the shapes differ. Of a
        pointer that was selected before, every alternative is a shape of its own.
        """
        shapes: dict[tuple, dict] = {}
        numbers: dict[str, object] = {}  # block -> number of its shape
        for block, pointer in inst.incoming.items():
            place = self.resolve(pointer)
            own = isinstance(place, Choice)
            numbers[block] = self._number(place, block, block if own else None, shapes, inst)
        blocks, result, selector = list(numbers), None, None
        home = next(b for b in self.function.blocks.values() if inst in b.insts)
        if len(shapes) > 1:
            selector = self._new_phi(home, numbers, 8, inst)
        for number, (shape, members) in enumerate(shapes.items()):
            base, offset, coefs = shape[:3]
            terms = {}
            for position, coef in enumerate(coefs):
                width = max(v[position].width for v in members.values())
                incoming = {
                    b: self._at_end(b, "sext", width, [members[b][position]], inst)
                    if b in members
                    else Const(0, width)
                    for b in blocks
                }
                terms[self._new_phi(home, incoming, width, inst)] = coef
            place = Place(base, offset, terms)
            if result is None:
                result = place
            else:
                cond = self.function.make(
                    "icmp", 1, [selector, Const(number, 8)], aux="eq", loc=inst.loc
                )
                home.insts.insert(_after_phis(home), cond)
                result = Choice(cond, place, result)
        return result

    def _number(self, place, block: str, owner, shapes: dict, inst: Inst):
        """Enter a place, or all that a choice chooses from, into ``shapes`` (shape -> block ->
        indices); the number of the shape, as a value at the end of ``block``.
        """
        if isinstance(place, Choice):
            a = self._number(place.a, block, owner, shapes, inst)
            b = self._number(place.b, block, owner, shapes, inst)
            return self._at_end(block, "select", 8, [place.cond, a, b], inst)
        values = sorted(place.terms.items(), key=lambda t: (t[1], t[0].name))
        alternative = len(shapes) if owner else None
        shape = (place.base, place.offset, tuple(k for _, k in values), alternative)
        shapes.setdefault(shape, {})[block] = [v for v, _ in values]
        number = list(shapes).index(shape)
        if number > 255:
            raise HlsError(inst.loc, "a pointer variable has more than 256 alternatives")
        return Const(number, 8)

    def _at_end(self, block: str, op: str, width: int, args: list, inst: Inst):
        """An operation in the end of a block; extended to the same width is the value itself."""
        if op == "sext" and args[0].width == width:
            return args[0]
        made = self.function.make(op, width, args, loc=inst.loc)
        self.function.blocks[block].insts.append(made)
        return made

    def _new_phi(self, home, incoming, width, inst) -> Inst:
        phi = self.function.make("phi", width, loc=inst.loc, hint="ptr")
        phi.incoming = incoming
        home.insts.insert(0, phi)
        return phi

    # ------------------------------------------------------------------ scan: shapes and owners
    def scan(self) -> None:
        """Note for every memory who uses it and which dimensions have run-time indices."""
        for block in self.function.blocks.values():
            for inst in list(block.insts):
                self.loc = inst.loc
                if inst.op in ("load", "store"):
                    width = inst.width or inst.args[0].width
                    self._scan(self.resolve(inst.args[-1]), width // 8 or 1)
                elif inst.op == "memcpy":
                    for pointer in inst.args:
                        self._scan(self.resolve(pointer), inst.aux)

    def _scan(self, place, num_bytes: int) -> None:
        if isinstance(place, Choice):
            self._scan(place.a, num_bytes)
            self._scan(place.b, num_bytes)
            return
        if isinstance(place.base, int):
            return
        array = self.array(place.base)
        for step in range(num_bytes):
            cell = array.cell(place.offset + step)
            if cell is None or cell.rest:
                continue
            memory = array.memory(cell.path)
            memory.dynamic |= {
                d for d, c in enumerate(array.coefficients(memory, place.terms, self.loc)) if c
            }
            if memory.owner not in (None, self.function.label) and not array.is_rom:
                raise HlsError(
                    self.loc,
                    f"array '{array.label}' is used by two processes ({memory.owner} and "
                    f"{self.function.label}); "
                    "move its data through a stream",
                )
            memory.owner = self.function.label

    def array(self, name: str) -> StaticArray:
        if name not in self.arrays:
            raise HlsError(self.loc, f"access of the unknown object '{name}'")
        return self.arrays[name]

    # ------------------------------------------------------------------ lowering
    def run(self) -> None:
        """Rewrite all blocks."""
        replaced: dict = {}
        for block in self.function.blocks.values():
            self.out = []
            for inst in block.insts:
                self.loc = inst.loc
                handler = getattr(self, "on_" + inst.op.replace(".", "_"), None)
                if handler:
                    result = handler(inst)
                    if result is not None:
                        replaced[inst] = result
                else:
                    if inst.op in BLOCKING:
                        self._bind(inst)
                    self.out.append(inst)
                self.out.extend(self.halves.get(inst, ()))
            block.insts = self.out
        self.function.replace(replaced)

    def emit(self, op, width, args=(), aux=None) -> Inst:
        inst = self.function.make(op, width, args, aux=aux, loc=self.loc)
        self.out.append(inst)
        return inst

    def _bind(self, inst: Inst) -> None:
        place = self.resolve(inst.aux["pointer"])
        if (
            isinstance(place, Choice)
            or not isinstance(place.base, int)
            or place.terms
            or place.offset
        ):
            raise HlsError(
                inst.loc,
                "the stream or port is chosen at run time, or is not an argument of the process",
            )
        inst.aux = {"port": place.base}

    def on_gep(self, inst):
        return None

    on_psel = on_pphi = on_gep

    def on_mark(self, inst):
        return None

    def on_load(self, inst: Inst):
        return self.load(self.resolve(inst.args[0]), inst.width)

    def on_store(self, inst: Inst):
        place = self.resolve(inst.args[1])
        if isinstance(place, Choice):
            self.store_choice(place, inst.args[0], Const(1, 1))
        else:
            self.store(place, inst.args[0], None)

    def on_memcpy(self, inst: Inst):
        target, source = self.resolve(inst.args[0]), self.resolve(inst.args[1])
        if any(isinstance(p, Choice) or isinstance(p.base, int) for p in (target, source)):
            raise HlsError(
                inst.loc, "a struct is copied through a pointer that is not tied to one array"
            )
        array, step = self.array(source.base), 0
        moves = []
        while step < inst.aux:
            cell = array.cell(source.offset + step)
            if cell is None:
                step += 1
                continue
            bits = cell.bits - 8 * cell.rest
            moves.append((step, self.load(source.shifted(step), bits)))
            step += max(1, (bits + 7) // 8)
        for step, value in moves:
            self.store(target.shifted(step), value, None)

    def store_choice(self, place, value, enable) -> None:
        if isinstance(place, Choice):
            inverse = self.emit("xor", 1, [place.cond, Const(1, 1)])
            self.store_choice(place.a, value, self.emit("and", 1, [enable, place.cond]))
            self.store_choice(place.b, value, self.emit("and", 1, [enable, inverse]))
        else:
            self.store(place, value, enable)

    def load(self, place, width: int):
        if isinstance(place, Choice):
            a, b = self.load(place.a, width), self.load(place.b, width)
            return self.emit("select", width, [place.cond, a, b])
        if isinstance(place.base, int):
            raise HlsError(self.loc, "a port is read through a plain pointer; use hls::burst_maxi")
        array = self.array(place.base)
        pieces, done = [], 0
        while done < width:
            cell = array.cell(place.offset + done // 8)
            if cell is None:
                pieces.append(Const(0, 8))
                done += 8
                continue
            element = self.element(array, cell, place, done // 8)
            word = element if isinstance(element, Const) else self.load_word(element, cell.bits)
            take = min(cell.bits - 8 * cell.rest, width - done)
            if take < cell.bits:
                word = self.emit("slice", take, [word], 8 * cell.rest)
            if cell.bits % 8 and done + take < width:
                raise HlsError(
                    self.loc, f"access of array '{array.label}' spans elements of {cell.bits} bits"
                )
            pieces.append(word)
            done += take
        return pieces[0] if len(pieces) == 1 else self.emit("concat", width, pieces)

    def load_word(self, access: Access, bits: int):
        memory = access.memory
        if memory.array.is_rom and not access.terms:
            words = memory.initial_words(access.bank) or [0] * memory.depth
            return Const(words[access.constant], bits)
        return self.emit("ld", bits, [self.index(access)], access)

    def store(self, place: Place, value, enable) -> None:
        if isinstance(place.base, int):
            self.store_output(place, value, enable)
            return
        array, done = self.array(place.base), 0
        if array.is_rom:
            raise HlsError(self.loc, f"array '{array.label}' is const and cannot be written")
        while done < value.width:
            cell = array.cell(place.offset + done // 8)
            if cell is None:
                done += 8
                continue
            if cell.rest or cell.bits > value.width - done:
                raise HlsError(
                    self.loc,
                    f"a part of an element of array '{array.label}' is written; write whole "
                    "elements",
                )
            access = self.element(array, cell, place, done // 8)
            data = (
                value if cell.bits == value.width else self.emit("slice", cell.bits, [value], done)
            )
            store = self.emit("st", 0, [self.index(access), data], access)
            store.pred = enable
            done += cell.bits

    def store_output(self, place: Place, value, enable) -> None:
        if place.offset or place.terms:
            raise HlsError(
                self.loc, "a port is written through a plain pointer; use hls::burst_maxi"
            )
        inst = self.emit("out", 0, [value], {"port": place.base})
        inst.pred = enable

    def element(self, array: StaticArray, cell, place: Place, step: int) -> Access:
        memory = array.memory(cell.path)
        coefs = array.coefficients(memory, place.terms, self.loc)
        return memory.locate(cell.indices, coefs, self.loc)

    def index(self, access: Access):
        """Word address as operations, in exactly the address bits of the memory."""
        bits = access.memory.addr_bits
        total = None
        for value, coef in access.terms:
            term = value
            if value.width > bits:
                term = self.emit("trunc", bits, [value])
            elif value.width < bits:
                # a term of the sum is a whole value: narrow ones are used as they were extended in
                # the source
                term = self.emit("zext", bits, [value])
            coef %= 1 << bits
            if coef == 0:
                continue
            if coef & (coef - 1) == 0:
                term = (
                    self.emit("shl", bits, [term, Const(coef.bit_length() - 1, bits)])
                    if coef > 1
                    else term
                )
            else:
                term = self.emit("mul", bits, [term, Const(coef, bits)])
            total = term if total is None else self.emit("add", bits, [total, term])
        constant = Const(access.constant, bits)
        if total is None:
            return constant
        return self.emit("add", bits, [total, constant]) if constant.value else total


def _after_phis(block) -> int:
    return next(
        (k for k, i in enumerate(block.insts) if i.op not in ("phi", "pphi")), len(block.insts)
    )
