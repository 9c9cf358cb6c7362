"""Every rule of the subset: one bad program, and the whole message that it must give (its last
line).
"""

from __future__ import annotations

import pytest
from hlsc import HlsError, compile_source
from hlsc_harness import HERE

REJECT = HERE / "reject"
PROGRAMS = sorted(REJECT.glob("*.cpp"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_refused_with_this_message(path):
    expected = path.read_text().rsplit("// error: ", 1)[1].strip()
    with pytest.raises(HlsError) as caught:
        compile_source(path, "core")
    assert str(caught.value).replace(f"{REJECT}/", "") == expected


def test_there_is_a_program_per_rule():
    assert len(PROGRAMS) >= 45


def test_the_frame_without_a_fault_is_accepted(tmp_path):
    source = tmp_path / "good.cpp"
    source.write_text(
        f'#include "{REJECT}/head.h"\n'
        "void work(uint32_t n, toks &in, toks &out) "
        "{ for (uint32_t i = 0; i < n; i++) out.write(in.read()); }\n"
        f'#include "{REJECT}/frame.h"\n'
    )
    assert compile_source(source, "core").loops()
