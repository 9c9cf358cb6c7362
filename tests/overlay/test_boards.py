"""The board files: what is in them reaches the design, what cannot be is refused."""

from __future__ import annotations

import dataclasses
import json

import bitstream_settings
import pytest
from bitstream_settings import (
    TCL_DIR,
    BitstreamError,
    board_names,
    load_board,
    rtl_files,
    settings,
    settings_tcl,
)
from overlay_flow import run_script
from overlay_tcl import NO_TCL, TCL


@pytest.fixture
def with_change(tmp_path, monkeypatch):
    """with_change(board, field=value) → that board, loaded from a changed file."""

    def make(name: str, **changes):
        facts = {**dataclasses.asdict(load_board(name)), **changes}
        (tmp_path / f"{name}.json").write_text(json.dumps(facts))
        with monkeypatch.context() as patch:
            patch.setattr(bitstream_settings, "BOARDS_DIR", tmp_path)
            return load_board(name)

    return make


@pytest.mark.parametrize("name", board_names())
def test_a_file_that_is_right_is_accepted(name, with_change):
    assert with_change(name) == load_board(name)


@pytest.mark.parametrize(
    ("name", "field", "value", "message"),
    [
        ("pynq-z2", "family", "versal", "family is 'versal', it must be one of zynq, zynqmp"),
        ("pynq-z2", "control_port", "M_AXI_HPM0_FPD", "on zynq it must be one of M_AXI_GP0, M_AXI"),
        ("kv260", "control_port", "M_AXI_GP0", "on zynqmp it must be one of M_AXI_HPM0_FPD"),
        ("pynq-z1", "data_port", "S_AXI_GP0", "data_port is 'S_AXI_GP0', on zynq it must be one"),
        ("zcu104", "program_port", "S_AXI_HP1", "on zynqmp it must be one of S_AXI_HP0_FPD"),
        ("kv260", "program_port", "S_AXI_HP0_FPD", "are both S_AXI_HP0_FPD; they must differ"),
        ("pynq-z2", "port_bits", 128, "port_bits is 128, on zynq it must be of (32, 64)"),
        ("pynq-z2", "control_base", "0xa0000000", "does not lie behind M_AXI_GP0 (0x40000000)"),
        ("ultra96v2", "control_base", "0x40000000", "does not lie behind M_AXI_HPM0_FPD"),
        ("ultra96v2", "target", "artix", "its name is ultra96v2, its target artix"),
    ],
)
def test_ports_addresses_and_widths_that_cannot_be_are_refused(
    name, field, value, message, with_change
):
    with pytest.raises(BitstreamError) as caught:
        with_change(name, **{field: value})
    assert message in str(caught.value) and f"{name}.json" in str(caught.value)


def test_a_field_too_many_or_too_few_is_named(tmp_path, with_change):
    with pytest.raises(BitstreamError, match="colour"):
        with_change("kv260", colour="black")


@pytest.mark.skipif(TCL is None, reason=NO_TCL)
@pytest.mark.parametrize(
    ("name", "ports", "base", "commands"),
    [
        ("pynq-z2", ("M_AXI_GP1", "S_AXI_HP2", "S_AXI_HP3"), "0x80000000", [
            "set_property ps CONFIG.PCW_USE_M_AXI_GP0=0",
            "set_property ps CONFIG.PCW_USE_M_AXI_GP1=1",
            "set_property ps CONFIG.PCW_S_AXI_HP2_DATA_WIDTH=64",
            "connect_bd_net ps/FCLK_CLK0 ps/M_AXI_GP1_ACLK",
            "connect_bd_intf_net ps/M_AXI_GP1 control_0/S00_AXI",
            "assign_bd_address offset=0x80000000 range=0x1000 ps/Data rasna_0/s_axi/reg0",
            "assign_bd_address offset=0x0 range=0x20000000 rasna_0/m_axi_data "
            "ps/S_AXI_HP3/HP3_DDR_LOWOCM",
        ]),
        ("kv260", ("M_AXI_HPM1_FPD", "S_AXI_HP2_FPD", "S_AXI_HP3_FPD"), "0xb0000000", [
            "set_property ps CONFIG.PSU__USE__M_AXI_GP0=0",
            "set_property ps CONFIG.PSU__USE__M_AXI_GP1=1",
            "set_property ps CONFIG.PSU__SAXIGP4__DATA_WIDTH=128",
            "connect_bd_net ps/pl_clk0 ps/maxihpm1_fpd_aclk",
            "connect_bd_net ps/pl_clk0 ps/saxihp3_fpd_aclk",
            "connect_bd_intf_net program_0/M00_AXI ps/S_AXI_HP2_FPD",
            "assign_bd_address offset=0xb0000000 range=0x1000 ps/Data rasna_0/s_axi/reg0",
            "assign_bd_address offset=0x0 range=0x80000000 rasna_0/m_axi_data "
            "ps/SAXIGP5/HP3_DDR_LOW",
        ]),
    ],
)  # fmt: skip
def test_the_ports_of_the_file_are_those_of_the_design(
    name, ports, base, commands, tmp_path, with_change
):
    board = with_change(name, control_port=ports[0], program_port=ports[1], data_port=ports[2],
                        control_base=base)
    kernel, wrapper = tmp_path / "rasna_top.sv", tmp_path / "rasna_accelerator_ip.v"
    for path in (kernel, wrapper):
        path.write_text("")
    path = tmp_path / "settings.tcl"
    sources = rtl_files([kernel], wrapper)
    path.write_text(settings_tcl(settings(board, "hlsc", tmp_path, sources, 1)))
    for script in ("package", "design"):
        status, output, log = run_script(TCL_DIR / f"{script}.tcl", path)
        assert status == 0, output
    assert [c for c in commands if c not in log] == []
