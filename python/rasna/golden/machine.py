"""Executes a program exactly as docs/machine.md says, and refuses what it forbids.

Written from that page alone, for clarity and strictness. It is not a simulator to run
networks with: that is the shared object built from ``hls/``.
"""

from __future__ import annotations

import numpy as np

from .. import isa
from ..encoding import unpack_arrays
from ..errors import GoldenError
from ..targets import Target, get_target
from .state import OK, STATUS_TEXT, WRITTEN_HERE, State
from .taps import execute_taps

_LANES = np.arange(isa.WORD_BYTES)


def run_program(
    program_words: np.ndarray,
    inputs: np.ndarray,
    output_words: int,
    scratch_words: int,
    target: Target | str,
) -> np.ndarray:
    """Run one program on one image.

    Parameters
    ----------
    program_words : uint64 (N,), instructions and streams
    inputs : uint64 (M,), the INPUT segment
    output_words, scratch_words : words of the OUTPUT and SCRATCH segments
    target : a Target or the name of one

    Returns
    -------
    uint64 (output_words,), the OUTPUT segment.

    Raises
    ------
    GoldenError for anything that docs/machine.md forbids: it names the instruction, the
    field and the address.
    """
    machine = Machine(program_words, inputs, output_words, scratch_words, target)
    machine.run()
    return machine.outputs


class Machine:
    """A machine with a program and one image; :meth:`step` executes one instruction."""

    def __init__(
        self,
        program_words: np.ndarray,
        inputs: np.ndarray,
        output_words: int,
        scratch_words: int,
        target: Target | str,
    ) -> None:
        self.state = State(
            np.array(program_words, np.uint64).ravel(),
            np.array(inputs, np.uint64).ravel(),
            int(output_words),
            int(scratch_words),
            get_target(target),
        )
        self.done = False

    @property
    def outputs(self) -> np.ndarray:
        """The OUTPUT segment, uint64; words that were not written are 0."""
        return self.state.segments[isa.Segment.OUTPUT]

    def run(self) -> None:
        """Execute up to END; then every word of OUTPUT must have been written."""
        while not self.done:
            self.step()
        missing = np.flatnonzero(~self.state.segment_written[isa.Segment.OUTPUT])
        if missing.size:
            raise self.state.fail(
                None, f"word {missing[0]} of OUTPUT was never written ({missing.size} in all)"
            )

    def step(self) -> tuple[isa.Opcode, dict[str, int]]:
        """Execute the next instruction; return its opcode and fields."""
        state = self.state
        program = state.segments[isa.Segment.PROGRAM]
        first = state.number * isa.INSTRUCTION_WORDS
        if first + isa.INSTRUCTION_WORDS > program.size:
            raise GoldenError(
                f"the program of {program.size} words has no END instruction",
                state.number, None, isa.Error.NO_END,
            )
        words = program[first : first + isa.INSTRUCTION_WORDS]
        try:
            opcode, fields = isa.decode(words)
        except ValueError as error:
            raise GoldenError(
                f"instruction {state.number}: {error}", state.number, "opcode",
                isa.Error.BAD_OPCODE,
            ) from None
        state.opcode_name = opcode.name
        if opcode is isa.Opcode.END:
            self.done = True
        else:
            _EXECUTE[opcode](state, fields)
            state.number += 1
        return opcode, fields


def _execute_fill(state: State, fields: dict[str, int]) -> None:
    state.num_stripes(fields)
    state.check_counts(fields, "num_words", "num_blocks")
    index = (
        fields["out_base"]
        + np.arange(fields["num_blocks"])[:, None] * fields["block_step"]
        + np.arange(fields["num_words"])
    ).ravel()
    state.check_range(
        "out_base", index, state.target.map_words, isa.Error.MAP_RANGE, "map word"
    )
    state.map_words[:, index] = fields["fill"] * 0x0101010101010101
    state.written.view("<u8")[:, index] = 0x0101010101010101
    state.stripes[:, index] = fields["stripes_log2"]


def _execute_load(state: State, fields: dict[str, int]) -> None:
    state.check_counts(fields, "num_channels", "num_rows", "num_words")
    state.check_field(fields, "last_lanes", 1, isa.WORD_BYTES)
    _check_segment(state, fields, isa.Segment.INPUT)
    index = state.segment_indices(fields)
    segment = isa.Segment(fields["segment"])
    unwritten = index[~state.segment_written[segment][index]]
    if unwritten.size:
        raise state.fail(
            "dram_addr", f"word {unwritten[0]} of {segment.name} was never written"
        )
    words = state.segments[segment][index]
    lanes = words.astype("<u8").view(np.uint8).reshape(*words.shape, isa.WORD_BYTES)
    lanes[:, :, -1, fields["last_lanes"] :] = fields["fill"]
    channel, row, word = np.indices(index.shape).reshape(3, -1)
    places = state.destinations(fields, channel, row + fields["out_row"], word)
    state.write_words(places, lanes.view("<u8").ravel(), fields)


def _execute_store(state: State, fields: dict[str, int]) -> None:
    num_stripes = state.num_stripes(fields)
    state.check_counts(fields, "num_channels", "num_rows", "num_words", "src_rows")
    _check_segment(state, fields, isa.Segment.OUTPUT)
    if fields["num_rows"] > num_stripes * fields["src_rows"]:
        raise state.fail(
            "num_rows",
            f"must be at most {num_stripes} stripes of {fields['src_rows']} rows, "
            f"is {fields['num_rows']}",
            isa.Error.BAD_FIELD,
        )
    index = state.segment_indices(fields)
    state.check_distinct("dram_addr", index, "memory word")
    channel, row, word = np.indices(index.shape)
    stripe = np.asarray(row // fields["src_rows"])
    address = np.asarray(
        fields["src_base"]
        + channel * fields["src_channel_step"]
        + (row % fields["src_rows"] + fields["src_halo_top"]) * fields["src_row_step"]
        + word
    )
    state.check_range(
        "src_base", address, state.target.map_words, isa.Error.MAP_RANGE, "map word"
    )
    source = stripe * (state.target.slices // num_stripes)  # the first copy
    status = state.read_status(fields["stripes_log2"]).reshape(
        *state.map_words.shape, isa.WORD_BYTES
    )[source, address]
    _refuse_status(state, status, source, address)
    segment = isa.Segment(fields["segment"])
    state.segments[segment][index] = state.map_words[source, address]
    state.segment_written[segment][index] = True


def _check_segment(state: State, fields: dict[str, int], port: isa.Segment) -> None:
    if fields["segment"] not in (port, isa.Segment.SCRATCH):
        raise state.fail(
            "segment",
            f"must be {port.name} or SCRATCH, is {isa.Segment(fields['segment']).name}",
            isa.Error.BAD_FIELD,
        )


def _refuse_status(
    state: State, status: np.ndarray, slices: np.ndarray, address: np.ndarray
) -> None:
    """status: (..., 8) for the words ``address`` of ``slices``, both of shape (...)."""
    bad = np.argwhere(status != OK)
    if bad.size:
        *at, lane = bad[0]
        raise state.fail(
            "src_base",
            f"slice {slices[tuple(at)]}, byte {address[tuple(at)] * isa.WORD_BYTES + lane} is "
            + STATUS_TEXT[int(status[tuple(bad[0])])],
        )


def _execute_table(state: State, fields: dict[str, int]) -> None:
    count = fields["num_entries"]
    state.check_counts(fields, "num_entries")
    if count > state.target.table_entries:
        raise state.fail(
            "num_entries",
            f"must be at most {state.target.table_entries}, is {count}",
            isa.Error.TABLE_RANGE,
        )
    words = state.stream(fields["stream_addr"], count, "stream_addr")
    for name, column in unpack_arrays(isa.TABLE_ENTRY, words[:, None]).items():
        state.table[name][:count] = column
    state.table_written[:count] = True


def _execute_curve(state: State, fields: dict[str, int]) -> None:
    words = state.stream(fields["stream_addr"], isa.CURVE_WORDS, "stream_addr")
    state.curve = np.ascontiguousarray(words, "<u8").view(np.uint8)


def _execute_move(state: State, fields: dict[str, int]) -> None:
    """All reads see the memory as it was before: reading a written byte is refused."""
    state.num_stripes(fields)
    state.check_counts(fields, "table_entries", "num_channels", "num_rows", "num_words")
    table = _move_table(state, fields)
    steps = np.indices(
        (fields["num_channels"], fields["num_rows"], fields["num_words"])
    ).reshape(3, -1)
    source = fields["src_base"] + _weigh(fields, steps, "src")  # bytes
    target = fields["out_base"] + _weigh(fields, steps, "out")  # words
    vectors = source[:, None] + table["offset"]  # (steps, entries)
    state.check_range(
        "src_base", np.concatenate([vectors.ravel(), vectors.ravel() + isa.WORD_BYTES - 1]),
        state.target.map_bytes, isa.Error.MAP_RANGE, "byte",
    )
    group = np.cumsum(table["last"]) - table["last"]  # entries of the same word
    out = target[:, None] + table["out_offset"][table["last"] == 1]  # (steps, words)
    state.check_range(
        "out_base", out, state.target.map_words, isa.Error.MAP_RANGE, "map word"
    )
    lanes = (table["lane_mask"][:, None] >> _LANES & 1).astype(bool)  # (entries, 8)
    _check_move_order(state, vectors, lanes, group, out)
    # Bytes that were never written, or with other stripes, travel on as unwritten.
    readable = state.read_status(fields["stripes_log2"]) == OK
    bytes_out = np.full((state.target.slices, *out.shape, isa.WORD_BYTES), fields["fill"], np.uint8)
    valid_out = np.ones(bytes_out.shape, bool)
    for entry in range(fields["table_entries"]):
        for lane in np.flatnonzero(lanes[entry]):
            at = vectors[:, entry] + lane
            bytes_out[:, :, group[entry], lane] = state.map_bytes[:, at]
            valid_out[:, :, group[entry], lane] = readable[:, at]
    for word in range(out.size):  # in order: a later word replaces an earlier one
        step, which = divmod(word, out.shape[1])
        address = out[step, which]
        at = slice(address * isa.WORD_BYTES, (address + 1) * isa.WORD_BYTES)
        state.map_bytes[:, at] = bytes_out[:, step, which]
        state.written[:, at] = valid_out[:, step, which]
        state.stripes[:, address] = fields["stripes_log2"]


def _move_table(state: State, fields: dict[str, int]) -> dict[str, np.ndarray]:
    """The columns of the entries in use, checked."""
    count = fields["table_entries"]
    if count > state.target.table_entries:
        raise state.fail(
            "table_entries",
            f"must be at most {state.target.table_entries}, is {count}",
            isa.Error.TABLE_RANGE,
        )
    if not state.table_written[:count].all():
        entry = int(np.argmin(state.table_written[:count]))
        raise state.fail("table_entries", f"table entry {entry} was never written")
    table = {name: column[:count] for name, column in state.table.items()}
    if not table["last"][-1]:
        raise state.fail(
            "table_entries", f"table entry {count - 1} must have last set", isa.Error.BAD_FIELD
        )
    return table


def _weigh(fields: dict[str, int], steps: np.ndarray, side: str) -> np.ndarray:
    channel, row, word = steps
    return (
        channel * fields[f"{side}_channel_step"]
        + row * fields[f"{side}_row_step"]
        + word * fields[f"{side}_word_step"]
    )


def _check_move_order(state, vectors, lanes, group, out) -> None:
    """Refuse a read of a byte whose word was written earlier by the same MOVE."""
    num_words = out.shape[1]
    never = np.iinfo(np.int64).max
    first_write = np.full(state.target.map_words, never)
    np.minimum.at(first_write, out.ravel(), np.arange(out.size))
    when = np.arange(vectors.shape[0])[:, None] * num_words + group
    for lane in range(isa.WORD_BYTES):
        used = lanes[:, lane]
        address = vectors[:, used] + lane
        late = first_write[address // isa.WORD_BYTES] < when[:, used]
        if late.any():
            raise state.fail(
                "src_base", f"byte {address[late][0]} is {STATUS_TEXT[WRITTEN_HERE]} before"
            )


_EXECUTE = {
    isa.Opcode.FILL: _execute_fill,
    isa.Opcode.LOAD: _execute_load,
    isa.Opcode.STORE: _execute_store,
    isa.Opcode.TABLE: _execute_table,
    isa.Opcode.TAPS: execute_taps,
    isa.Opcode.MOVE: _execute_move,
    isa.Opcode.CURVE: _execute_curve,
}
