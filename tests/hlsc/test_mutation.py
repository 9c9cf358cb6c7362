"""The checker is checked: faults planted in the compiler and in the RTL library, each of which a
test must catch.

Every mutant is tried on golden.cpp (schedule, then function) and on a few random programs until
something notices it.
"""

# ruff: noqa: E501 (text of generated code)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import hlsc_bench as bench
import hlsc_fuzz as fuzz
import hlsc_harness as harness
import pytest
from hlsc import (
    HlsError,
    compile_source,
    deps,
    dsp,
    emit,
    emit_memory,
    ifconvert,
    llparse,
    memory,
    narrow,
    ranges,
    schedule,
    simplify,
    values,
    verilog,
)
from hlsc.bdd import Bdd
from hlsc_harness import GOLDEN, summary

FUZZ_SEEDS = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]


# ---------------------------------------------------------------------- compiler faults
def store_before_load_is_forgotten(patch):
    patch.setattr(deps, "_same_iteration", lambda a, b: False)


def loop_carried_dependences_are_forgotten(patch):
    patch.setattr(deps, "carried_distance", lambda a, b, induction: None)


def different_banks_are_one(patch):
    patch.setattr(memory.Access, "key", property(lambda self: (self.memory.name, (0,))))


def signed_comparison_is_unsigned(patch):
    real = verilog.expression

    def wrong(inst, args):
        return (
            real(inst, args).replace("$signed", "$unsigned")
            if inst.op == "icmp"
            else real(inst, args)
        )

    patch.setattr(emit, "expression", wrong)


def sign_extension_is_zero_extension(patch):
    real = verilog.expression

    def wrong(inst, args):
        if inst.op == "sext":
            return verilog.extend(args[0], inst.args[0].width, inst.width, False)
        return real(inst, args)

    patch.setattr(values, "expression", wrong)


def factor_signs_are_lost(patch):
    real = verilog.product

    def wrong(inst, args):
        inst.aux = (False, False)
        return real(inst, args)

    patch.setattr(verilog, "product", wrong)


def branch_condition_narrows_too_much(patch):
    real = ranges._clip

    def wrong(lo, hi, cc, other_lo, other_hi):
        lo, hi = real(lo, hi, cc, other_lo, other_hi)
        return lo, hi - (1 if hi > lo + 1 else 0)

    patch.setattr(ranges, "_clip", wrong)


def demand_of_high_bits_is_lost(patch):
    real = narrow._demands

    def wrong(inst, bits):
        return [(a, min(n, 7)) if inst.op == "slice" else (a, n) for a, n in real(inst, bits)]

    patch.setattr(narrow, "_demands", wrong)


def stores_lose_their_condition(patch):
    real = ifconvert._Converter._predicate

    def wrong(self, inst, condition):
        if inst.op != "st":
            real(self, inst, condition)

    patch.setattr(ifconvert._Converter, "_predicate", wrong)


def merged_values_are_swapped(patch):
    real = ifconvert._Converter._choose

    def wrong(self, choices, width, care):
        if len(choices) == 2:
            choices = [(choices[0][0], choices[1][1]), (choices[1][0], choices[0][1])]
        return real(self, choices, width, care)

    patch.setattr(ifconvert._Converter, "_choose", wrong)


def everything_excludes_everything(patch):
    patch.setattr(Bdd, "exclusive", lambda self, f, g: True)


def loads_are_reused_across_stores(patch):
    patch.setattr(simplify._Numbering, "version", lambda self, access: 0)


def sums_give_bits_that_they_change(patch):
    patch.setattr(dsp, "_end", lambda cut: 0)


def open_values_win(patch):
    real = simplify.fold

    def wrong(inst):
        is_open = [isinstance(a, simplify.Undefined) for a in inst.args[1:]]
        if inst.op == "select" and sum(is_open) == 1:
            return simplify.Const(0, inst.width)
        return real(inst)

    patch.setattr(simplify, "fold", wrong)


def saturation_sees_only_all_bits_together(patch):
    real = verilog._saturation

    def wrong(inst, args):
        text = real(inst, args)
        return text and text.replace("& |", "& &")

    patch.setattr(verilog, "_saturation", wrong)


def single_bits_are_inverted(patch):
    real = simplify._Numbering.test_of_a_bit

    def wrong(self, inst):
        real(self, inst)
        if inst.op == "xor" and isinstance(inst.args[0], simplify.Inst) and inst.args[0].op == "slice":
            inst.args[1] = simplify.Const(1 - inst.args[1].value, 1)

    patch.setattr(simplify._Numbering, "test_of_a_bit", wrong)


def tables_are_shifted(patch):
    real = memory.Memory.initial_words

    def wrong(self, bank):
        words = real(self, bank)
        return words and words[1:] + words[:1]

    patch.setattr(memory.Memory, "initial_words", wrong)


def token_fields_are_misplaced(patch):
    real = llparse._token_fields

    def wrong(kind):
        fields, total = real(kind)
        if len(fields) > 2 and fields[1][1] == fields[2][1]:
            fields[1], fields[2] = fields[2], fields[1]
        return fields, total

    patch.setattr(llparse, "_token_fields", wrong)


def cyclic_banks_keep_the_whole_index(patch):
    real = memory.Memory._bank

    def wrong(self, d, part, index, coef, loc):
        coordinate, word, rest = real(self, d, part, index, coef, loc)
        return (coordinate, 0 if part.kind == "cyclic" else word, rest)

    patch.setattr(memory.Memory, "_bank", wrong)


def loops_end_before_they_drain(patch):
    real = emit.ProcessEmitter.loop_states

    def wrong(self, block):
        real(self, block)
        name = self.values.block_names[block.name]
        at = next(
            k
            for k, line in enumerate(self.values.declarations)
            if line.startswith(f"wire last_{name} =")
        )
        bit = f"[{block.loop.ii - 1}]" if block.num_cycles > 1 else ""
        self.values.declarations[at] = f"wire last_{name} = pv_{name}{bit} & !next_{name};"

    patch.setattr(emit.ProcessEmitter, "loop_states", wrong)


def reads_do_not_wait_for_data(patch):
    real = emit.ProcessEmitter.text

    def wrong(self):
        self.blocked = [(f"{c} & 1'b0" if "_rd & " in c else c, what) for c, what in self.blocked]
        return real(self)

    patch.setattr(emit.ProcessEmitter, "text", wrong)


def ports_have_no_limit(patch):
    patch.setattr(
        schedule._Scheduler, "can_share", staticmethod(lambda guards, other, inst, time: True)
    )
    patch.setattr(schedule._Scheduler, "_resource_ii", lambda self: 1)


def registers_of_delayed_values_are_one_short(patch):
    real = values.Values._delay

    def wrong(self, inst, source, start, time):
        return real(self, inst, source, start, max(start, time - 1) if time - start > 1 else time)

    patch.setattr(values.Values, "_delay", wrong)


def packed_fields_are_swapped(patch):
    real = emit_memory.MemoryEmitter.ram

    def wrong(self, members):
        before = len(self.lines)
        real(self, members)
        if len(members) > 1:
            line = self.lines[before]
            start = line.index(".read_data({") + len(".read_data({")
            names = line[start : line.index("}", start)].split(", ")
            self.lines[before] = line.replace(", ".join(names), ", ".join(reversed(names)))

    patch.setattr(emit_memory.MemoryEmitter, "ram", wrong)


# ---------------------------------------------------------------------- library faults: file, text,
# wrong text
LIBRARY_FAULTS = {
    "ram_is_write_first": ("hls_ram", "if (read_enable) read_data <= mem[read_addr];",
                           "if (read_enable) read_data <= write_enable && write_addr == read_addr ? write_data : mem[read_addr];"),
    "fifo_loses_a_word_when_full": ("hls_fifo", "full_reg  <= count_next == FULL;", "full_reg  <= 1'b0;"),
    "read_bursts_cross_4_kb": ("hls_axi_read", "13'h1000 -", "13'h1fff -"),
    "read_credits_are_not_checked": ("hls_axi_read", "13'(credit_reg) >= beats", "1'b1"),
    "write_bursts_are_one_beat_long": ("hls_axi_write", "wire beat_done = m_axi_wvalid & m_axi_wready;",
                                       "wire beat_done = m_axi_wvalid;"),
    "write_last_comes_late": ("hls_axi_write", "m_axi_wlast = beat_reg == length", "m_axi_wlast = beat_reg == length + 8'd1"),
    "response_is_forgotten": ("hls_axi_write", "answered = (response & ends_request) | answer_empty", "answered = answer_empty"),
}  # fmt: skip

COMPILER_FAULTS: list[Callable] = [
    store_before_load_is_forgotten,
    loop_carried_dependences_are_forgotten,
    different_banks_are_one,
    signed_comparison_is_unsigned,
    sign_extension_is_zero_extension,
    factor_signs_are_lost,
    sums_give_bits_that_they_change,
    open_values_win,
    saturation_sees_only_all_bits_together,
    single_bits_are_inverted,
    branch_condition_narrows_too_much,
    demand_of_high_bits_is_lost,
    stores_lose_their_condition,
    merged_values_are_swapped,
    everything_excludes_everything,
    loads_are_reused_across_stores,
    tables_are_shifted,
    token_fields_are_misplaced,
    cyclic_banks_keep_the_whole_index,
    loops_end_before_they_drain,
    reads_do_not_wait_for_data,
    ports_have_no_limit,
    registers_of_delayed_values_are_one_short,
    packed_fields_are_swapped,
]


def golden_message(tmp_path: Path, cache: Path) -> str:
    """What golden.cpp says about the compiler as it is now ("" if all is well)."""
    try:
        result = compile_source(GOLDEN, "core")
    except (HlsError, KeyError, IndexError, ValueError) as error:
        return f"refused: {error}"
    if summary(result) != (GOLDEN.parent / "golden.txt").read_text():
        return "another schedule"
    harness.write_result(result, tmp_path)
    text = bench.bench("core", ["port:src", "port:dst", "scalar:n"], max_n=1500, limit=100_000)
    try:
        program = harness.build(GOLDEN, "core", text, tmp_path, cache)
    except harness.ToolError:
        return "it does not build"
    done = harness.run([program, 3, 3], check=False)
    return (
        ""
        if done.returncode == 0 and done.stdout.startswith("EQUAL")
        else done.stdout + done.stderr
    )


def who_notices(tmp_path: Path, cache: Path) -> str:
    """The first test that notices the planted fault, with its message."""
    message = golden_message(tmp_path, cache)
    if message:
        return f"golden: {message}"
    for seeds in FUZZ_SEEDS:
        message = fuzz.check(seeds, tmp_path / f"p{seeds[0]}", cache)
        if message:
            return f"random programs {seeds}: {message}"
    return ""


def test_without_a_fault_nothing_is_noticed(tmp_path, runtime_cache):
    assert golden_message(tmp_path, runtime_cache) == ""


def some_always(faults) -> list:
    """The first three, and the others in the long run."""
    faults = list(faults)
    return faults[:3] + [pytest.param(fault, marks=pytest.mark.long) for fault in faults[3:]]


@pytest.mark.parametrize("fault", some_always(COMPILER_FAULTS), ids=lambda f: f.__name__)
def test_compiler_fault_is_noticed(fault, monkeypatch, tmp_path, runtime_cache):
    fault(monkeypatch)
    noticed = who_notices(tmp_path, runtime_cache)
    print(noticed[:300])
    assert noticed


@pytest.mark.parametrize("name", some_always(LIBRARY_FAULTS))
def test_library_fault_is_noticed(name, monkeypatch, tmp_path, runtime_cache):
    module, right, wrong = LIBRARY_FAULTS[name]
    library = []
    for path in harness.LIBRARY:
        text = path.read_text()
        if path.stem == module:
            assert right in text
            text = text.replace(right, wrong)
        library.append(tmp_path / path.name)
        library[-1].write_text(text)
    monkeypatch.setattr(harness, "LIBRARY", library)
    noticed = who_notices(tmp_path, runtime_cache)
    print(noticed[:300])
    assert noticed
