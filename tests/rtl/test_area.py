"""scripts/area.py: what it counts and refuses, on a circuit of a few lines."""

from __future__ import annotations

import area
import pytest
from build_sim import BuildError
from rtl_harness import unavailable

COUNTER = """
module rasna_accelerator(input clk, input [17:0] a, b, output reg [35:0] y, output reg [7:0] n);
  always @(posedge clk) begin y <= $signed(a) * $signed(b); n <= a[7:0] ^ b[7:0]; end
endmodule
"""
LATCH = """
module rasna_accelerator(input on, input [3:0] a, output reg [3:0] y);
  always @* if (on) y = a;
endmodule
"""
LOOP = "module rasna_accelerator(input a, output y); wire z = !(y & a); assign y = z; endmodule"


@pytest.fixture
def measure_text(tmp_path, monkeypatch):
    """measure_text(verilog) → the counts of area.measure, with that text as the accelerator."""

    def measure(text: str) -> dict[str, float]:
        if not area.yosys_is_there():
            unavailable("Yosys (Python package pyosys) is missing")
        source = tmp_path / "circuit.v"
        source.write_text(text)
        commands = area.yosys_commands

        def replaced(*arguments):
            return [f"read_verilog {source}", *commands(*arguments)[1:]]

        monkeypatch.setattr(area, "yosys_commands", replaced)
        monkeypatch.setattr(area, "generate", lambda target, out: source)
        return area.measure("tiny", tmp_path)

    return measure


def test_cells_are_counted_by_resource(measure_text):
    counts = measure_text(COUNTER)
    assert counts["DSP48"] == 1 and counts["BRAM36"] == 0 and counts["LUT as RAM"] == 0
    assert counts["FF"] == 8  # those of the product are in the DSP48
    assert counts["LUT functions"] == 8  # of two inputs: two in a LUT6
    assert counts["LUT"] == 4


@pytest.mark.parametrize("text, message", [(LATCH, "latch"), (LOOP, "Yosys failed")])
def test_latches_and_loops_are_refused(measure_text, text, message):
    with pytest.raises(BuildError, match=message):
        measure_text(text)


def test_weights_of_cells():
    cells = {"LUT6": 2, "INV": 1, "RAM64M": 3, "SRL16E": 5, "FDRE": 7, "RAMB18E1": 3, "RAMB36E1": 1,
             "DSP48E1": 4, "CARRY4": 9}
    assert area.resources(cells, lut6=2) == {
        "LUT": 2 + 12 + 5, "LUT functions": 3 + 12 + 5, "LUT as RAM": 12, "LUT as shift register": 5, "FF": 7, "DSP48": 4,
        "BRAM36": 2.5,
    }
    assert "LUT" not in area.resources(cells, lut6=None)


def test_an_unknown_estimate_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("   LUT6    3\n   Estimated number of LCs:         12\n")
    assert area.logic_cells(tmp_path / "x.txt") == 12
    (tmp_path / "x.txt").write_text("   LUT6    3\n")
    with pytest.raises(BuildError) as error:
        area.logic_cells(tmp_path / "x.txt")
    assert str(error.value) == (
        f"{tmp_path / 'x.txt'} has no estimate of logic cells; pyosys 0.70 writes one"
    )


def test_the_table_says_what_does_not_fit():
    text = area.table("pynq-z2", {"LUT": 53_201, "FF": 10, "DSP48": 220, "BRAM36": 140})
    lines = text.splitlines()
    assert lines[0] == "pynq-z2 on XC7Z020"
    assert [line for line in lines if "DOES NOT FIT" in line] == [lines[2]]
    assert "53,201" in lines[2] and "estimate" in lines[2]
