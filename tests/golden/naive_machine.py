"""docs/machine.md as plain Python loops, one byte at a time, without a single check.

Slow and obvious: it exists to keep the vectorised golden model honest.
"""

from __future__ import annotations

from rasna import isa
from rasna.isa import Opcode


def run_naive(program, inputs, output_words, scratch_words, target):
    """The words of OUTPUT as a list of Python integers."""
    machine = _Naive([int(w) for w in program], [int(w) for w in inputs], target)
    machine.memory[isa.Segment.OUTPUT] = [0] * output_words
    machine.memory[isa.Segment.SCRATCH] = [0] * scratch_words
    pc = 0
    while True:
        opcode, f = isa.decode(machine.memory[isa.Segment.PROGRAM][pc : pc + 8])
        if opcode is Opcode.END:
            return machine.memory[isa.Segment.OUTPUT]
        getattr(machine, opcode.name.lower())(f)
        pc += 8


def _bytes(word):
    return [(word >> (8 * p)) & 0xFF for p in range(8)]


def _word(values):
    return sum((v & 0xFF) << (8 * p) for p, v in enumerate(values))


def _signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


class _Naive:
    def __init__(self, program, inputs, target):
        self.L = target.slices
        self.map = [[0] * target.map_bytes for _ in range(self.L)]
        self.acc = {}
        self.table_entries = []
        self.memory = {isa.Segment.PROGRAM: program, isa.Segment.INPUT: inputs}

    def put(self, s, word_address, values):
        self.map[s][8 * word_address : 8 * word_address + 8] = values

    def write_word(self, f, c, d, x, values):
        stripes = 1 << f["out_stripes_log2"]
        for s in range(self.L):
            j = s // (self.L // stripes)
            local = d - j * f["out_rows"] + f["out_halo_top"]
            if f["circular_rows"]:
                local %= f["out_height"]
            if 0 <= local < f["out_local_rows"]:
                row = f["out_base"] + c * f["out_channel_step"] + local * f["out_row_step"]
                if f["out_split"]:
                    for p, value in enumerate(values):
                        word = row + x // 2 + (f["out_phase_step"] if p % 2 else 0)
                        self.map[s][8 * word + 4 * (x % 2) + p // 2] = value
                else:
                    self.put(s, row + x, values)

    def fill(self, f):
        for s in range(self.L):
            for b in range(f["num_blocks"]):
                for i in range(f["num_words"]):
                    self.put(s, f["out_base"] + b * f["block_step"] + i, [f["fill"]] * 8)

    def _dram(self, f, c, y, x):
        return f["dram_addr"] + c * f["dram_channel_step"] + y * f["dram_row_step"] + x

    def load(self, f):
        for c in range(f["num_channels"]):
            for y in range(f["num_rows"]):
                for x in range(f["num_words"]):
                    values = _bytes(self.memory[f["segment"]][self._dram(f, c, y, x)])
                    if x == f["num_words"] - 1:
                        values[f["last_lanes"] :] = [f["fill"]] * (8 - f["last_lanes"])
                    self.write_word(f, c, y + f["out_row"], x, values)

    def store(self, f):
        for c in range(f["num_channels"]):
            for y in range(f["num_rows"]):
                for x in range(f["num_words"]):
                    j = y // f["src_rows"]
                    local = y % f["src_rows"] + f["src_halo_top"]
                    a = 8 * (f["src_base"] + c * f["src_channel_step"]
                             + local * f["src_row_step"] + x)
                    self.memory[f["segment"]][self._dram(f, c, y, x)] = _word(
                        self.map[j * (self.L >> f["stripes_log2"])][a : a + 8])

    def table(self, f):
        for i in range(f["num_entries"]):
            word = self.memory[isa.Segment.PROGRAM][f["stream_addr"] + i]
            entry = isa.unpack(isa.TABLE_ENTRY, [word])
            self.table_entries[i : i + 1] = [entry]

    def curve(self, f):
        words = self.memory[isa.Segment.PROGRAM][f["stream_addr"] :][: isa.CURVE_WORDS]
        self.curve_bytes = [byte for word in words for byte in _bytes(word)]

    def move(self, f):
        for s in range(self.L):
            for c in range(f["num_channels"]):
                for y in range(f["num_rows"]):
                    for x in range(f["num_words"]):
                        self._move_step(f, s, c, y, x)

    def _move_step(self, f, s, c, y, x):
        word = [f["fill"]] * 8
        for e in self.table_entries[: f["table_entries"]]:
            a = (f["src_base"] + c * f["src_channel_step"] + y * f["src_row_step"]
                 + x * f["src_word_step"] + e["offset"])
            for p in range(8):
                if e["lane_mask"] >> p & 1:
                    word[p] = self.map[s][a + p]
            if e["last"]:
                self.put(s, f["out_base"] + c * f["out_channel_step"] + y * f["out_row_step"]
                         + x * f["out_word_step"] + e["out_offset"], word)
                word = [f["fill"]] * 8

    def taps(self, f):
        stripes = 1 << f["stripes_log2"]
        copies = self.L // stripes
        at, shared, writes = f["stream_addr"], None, []
        for n in range(f["num_channels"]):
            program = self.memory[isa.Segment.PROGRAM]
            record = isa.unpack(isa.CHANNEL_RECORD, program[at : at + 2])
            words = program[at + 2 : at + 2 + record["list_words"]]
            at += 2 + record["list_words"]
            if not f["list_shared"] or n == 0:
                shared = self._walk(f, words, record["num_codes"])
            for j in range(stripes):
                for y in range(f["tile_rows"]):
                    for x in range(f["tile_words"]):
                        s = j * copies + n % copies
                        i = (f["acc_base"] + (n // copies * f["tile_rows"] + y)
                             * f["tile_words"] + x)
                        lanes = [self._lane(f, record, shared, s, i, y, x, p) for p in range(8)]
                        if f["acc_keep"]:
                            self.acc[s, i] = lanes
                            continue
                        o = j * f["tile_rows"] + y
                        if f["row_first"] <= o < f["row_limit"]:
                            out = [self._requantize(f, record, v) for v in lanes]
                            if x == f["tile_words"] - 1:
                                out[f["last_lanes"] :] = [f["fill"]] * (8 - f["last_lanes"])
                            writes.append((record["out_channel"], o + f["out_row"], x, out))
        for c, d, x, out in writes:
            self.write_word(f, c, d, x, out)

    def _walk(self, f, words, num_codes):
        taps, position, group = [], 0, 0
        for k in range(num_codes):
            if f["encoding"]:
                code = words[k // 5] >> (12 * (k % 5)) & 0xFFF
                weight, run = code & 0xFF, code >> 8
            else:
                weight, run = words[k // 8] >> (8 * (k % 8)) & 0xFF, 0
            position += run
            if position >= f["table_entries"]:
                position, group = position - f["table_entries"], group + f["group_step"]
            weight = weight - 256 if weight > 127 else weight
            taps.append((weight, self.table_entries[position], group))
            position += 1
            if position >= f["table_entries"]:
                position, group = position - f["table_entries"], group + f["group_step"]
        return taps

    def _lane(self, f, record, taps, s, i, y, x, p):
        value = self.acc[s, i][p] if f["acc_init"] else record["bias"]
        for weight, entry, group in taps:
            if not entry["lane_mask"] >> p & 1:
                continue
            a = (record["src_base"] + y * f["src_row_step"] + x * f["src_word_step"]
                 + group + entry["offset"] + p)
            v = self.map[s][a]
            if entry["is_signed"] and v > 127:
                v -= 256
            if f["func"] != isa.Func.MAX:
                value += weight * v
            elif weight != 0:
                value = max(value, v)
        return value

    def _requantize(self, f, record, acc):
        limit = 1 << (f["ib"] - 1)
        t = max(-limit, min(limit - 1, acc >> record["pre_shift"]))
        product = t * record["multiplier"]
        if f["func"] == isa.Func.PRODUCT:
            x = _signed(acc & 511, 9)
            product = x * _signed((acc - x) >> 9 & 511, 9)
        v = (product + (1 << (record["shift"] - 1))) >> record["shift"]
        v = max(f["clamp_lo"], min(f["clamp_hi"], v))
        return self.curve_bytes[v & 0xFF] if f["curve"] else v & 0xFF
