"""MOVE instructions that assemble row slots: circular halos and stride phases.

What a byte of a slot should hold is a pixel number (or nothing: the fill byte). From
that follow, for every word, the masked vectors of the plain row that make it up.
"""

from __future__ import annotations

from dataclasses import dataclass

from rasna.isa import WORD_BYTES, Opcode

from .emitter import Emitter
from .geometry import Region, RowSlot, ceil_div


@dataclass(frozen=True)
class WordGather:
    """One word of the slot: ``word`` and the (byte offset in the source row, lane mask) pairs."""

    word: int
    vectors: tuple[tuple[int, int], ...]


def _pixel(x: int, slot: RowSlot) -> int | None:
    """The source pixel of position x, None outside the map (or outside what is needed)."""
    if not -slot.left <= x < slot.width + slot.right:
        return None
    if 0 <= x < slot.width:
        return x
    return x % slot.width if slot.circular else None


def _gather(word: int, pixels: list[int | None], origin: int) -> WordGather:
    vectors: dict[int, int] = {}
    for lane, x in enumerate(pixels):
        if x is not None:
            offset = origin + x - lane
            vectors[offset] = vectors.get(offset, 0) | 1 << lane
    return WordGather(word, tuple(sorted(vectors.items())))


def halo_gathers(slot: RowSlot) -> list[WordGather]:
    """Words of a plain circular slot that hold halo pixels, in an order safe in place.

    Left words only read real pixels. Right words go from the last to the first, since the
    first also holds real pixels and rewrites them.
    """
    origin = slot.origins[0]
    left_words = origin // WORD_BYTES
    first_right = (origin + slot.width) // WORD_BYTES
    right = range(first_right, ceil_div(origin + slot.width + slot.right, WORD_BYTES))
    words = [*range(left_words), *reversed(right)]
    return [
        _gather(w, [_pixel(w * WORD_BYTES + p - origin, slot) for p in range(WORD_BYTES)], origin)
        for w in words
    ]


def phase_gathers(slot: RowSlot, source_origin: int) -> list[WordGather]:
    """All words of a phase slot, gathered out of a plain row whose pixel 0 is at source_origin."""
    bounds = [*slot.origins, slot.num_words * WORD_BYTES]
    gathers = []
    for q in range(slot.stride):
        left_words = ceil_div(max(0, -ceil_div(-slot.left - q, slot.stride)), WORD_BYTES)
        first = slot.origins[q] // WORD_BYTES - left_words
        limit = slot.num_words
        if q + 1 < slot.stride:
            nxt = ceil_div(max(0, -ceil_div(-slot.left - q - 1, slot.stride)), WORD_BYTES)
            limit = bounds[q + 1] // WORD_BYTES - nxt
        for w in range(first, limit):
            j = [w * WORD_BYTES + p - slot.origins[q] for p in range(WORD_BYTES)]
            pixels = [_pixel(i * slot.stride + q, slot) for i in j]
            gathers.append(_gather(w, pixels, source_origin))
    return gathers


def _runs(gathers: list[WordGather], step: int) -> list[list[WordGather]]:
    """Consecutive words whose vectors only move on by ``step`` bytes per word."""
    runs: list[list[WordGather]] = []
    for g in gathers:
        if runs:
            last = runs[-1][-1]
            moved = tuple((offset + step, mask) for offset, mask in last.vectors)
            if g.vectors and g.word == last.word + 1 and g.vectors == moved:
                runs[-1].append(g)
                continue
        runs.append([g])
    return runs


def _entries(gathers: list[WordGather], first_word: int) -> list[dict[str, int]]:
    entries: list[dict[str, int]] = []
    for g in gathers:
        vectors = g.vectors or ((0, 0),)
        for offset, mask in vectors:
            entries.append(dict(offset=offset, lane_mask=mask, out_offset=g.word - first_word))
        entries[-1]["last"] = 1
    return entries


def _batches(runs: list[list[WordGather]], table_entries: int) -> list[list[list[WordGather]]]:
    """Single-word runs share a MOVE as long as the table holds them; long runs get their own."""
    batches: list[list[list[WordGather]]] = []
    room = 0
    for run in runs:
        need = max(1, len(run[0].vectors))
        if len(run) == 1 and batches and len(batches[-1][0]) == 1 and need <= room:
            batches[-1].append(run)
            room -= need
        else:
            batches.append([run])
            room = table_entries - need
    return batches


def emit_gathers(
    emitter: Emitter, gathers: list[WordGather], source: Region, dest: Region, step: int
) -> None:
    """Emit TABLE and MOVE for all rows of all channels of ``dest``.

    source and dest have the same channels, stripes and local rows. ``step``: source bytes
    from one word to the next in a long run.
    """
    src, dst = source.geometry, dest.geometry
    for batch in _batches(_runs(gathers, step), emitter.target.table_entries):
        first_word = batch[0][0].word
        words = [run[0] for run in batch]
        # The vectors' offsets may be negative against the row; the base takes the lowest one.
        low = min((v[0] for g in words for v in g.vectors), default=0)
        entries = _entries(words, first_word)
        for e in entries:
            e["offset"] -= low if e["lane_mask"] else 0
        emitter.table(entries)
        emitter.add(
            Opcode.MOVE,
            fill=dst.fill & 0xFF,
            stripes_log2=dst.stripes_log2,
            table_entries=len(entries),
            num_channels=dest.num_channels,
            num_rows=dst.local_rows,
            num_words=len(batch[0]),
            src_base=source.base * WORD_BYTES + low,
            src_channel_step=src.channel_bytes,
            src_row_step=src.row_bytes,
            src_word_step=step,
            out_base=dest.base + first_word,
            out_channel_step=dst.channel_words,
            out_row_step=dst.slot.num_words,
            out_word_step=1,
        )
