"""The table of cycles per layer."""

from __future__ import annotations

from rasna.runtime.profile import LayerCycles, Profile


def test_a_layer_without_an_instruction_has_no_difference():
    profile = Profile("tiny", (
        LayerCycles("conv", "conv2d", 3, 200, 210),
        LayerCycles("join", "concat", 0, 0, 0),
        LayerCycles("start and end", "", 1, 50, 40),
    ))
    assert str(profile).splitlines() == [
        "layer          operation  instr.   estimated    measured  difference",
        "conv           conv2d          3         200         210       +5.0%",
        "join           concat          0           0           0",
        "start and end                  1          50          40      -20.0%",
        "total                          4         250         250       +0.0%",
        "0.003 ms at the 100 MHz of tiny",
    ]
