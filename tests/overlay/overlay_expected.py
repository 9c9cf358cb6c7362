"""What the scripts must do for a board, written from the ISA and the manuals, not from the Tcl."""

from __future__ import annotations

from rasna import isa
from rasna.targets import TARGETS

# Board: part, board files, clock in MHz, bits of the memory ports, memory behind them
BOARDS = {
    "pynq-z1": ("xc7z020clg400-1", "www.digilentinc.com:pynq-z1:part0:1.0", 150, 64, 512 << 20),
    "pynq-z2": ("xc7z020clg400-1", "tul.com.tw:pynq-z2:part0:1.0", 150, 64, 512 << 20),
    "kv260": ("xck26-sfvc784-2LV-c", "xilinx.com:kv260_som:part0:1.4", 200, 128, 2 << 30),
    "zcu104": ("xczu7ev-ffvc1156-2-e", "xilinx.com:zcu104:part0:1.1", 200, 128, 2 << 30),
    "ultra96v2": ("xczu3eg-sbva484-1-i", "avnet.com:ultra96v2:part0:1.2", 150, 64, 2 << 30),
}
ACCESS = {"r": "read-only", "w": "write-only", "rw": "read-write"}


def is_zynq_7000(board: str) -> bool:
    return BOARDS[board][0].startswith("xc7z")


def package_commands(board: str, sources: list[str]) -> list[str]:
    vendor, library, name, version = isa.IP_VLNV.split(":")
    lines = [f"create_project package part={BOARDS[board][0]}"]
    lines += [f"add_files {source}" for source in sources]
    lines += [
        "set_property isa.svh file_type=Verilog Header",
        "set_property sources_1 top=rasna_accelerator_ip",
        "update_compile_order sources_1",
        f"package_project -vendor {vendor} -library {library} -taxonomy /UserIP -import_files "
        "-force",
        f"set_property new name={name}",
        "set_property new display_name=Rasna accelerator",
        f"set_property new version={version}",
        "set_property new core_revision=1",
        *(f"associate_bus_interfaces {bus} aclk" for bus in ("s_axi", "m_axi_program",
                                                               "m_axi_data")),
        "set_property reg0 range=0x1000",
    ]
    for register, offset, access, _ in isa.REGISTERS:
        lines += [
            f"add_register {register}",
            f"set_property {register} address_offset={offset:#04x}",
            f"set_property {register} size=32",
            f"set_property {register} access={ACCESS[access]}",
        ]
    return lines + ["create_xgui_files", "update_checksums", "check_integrity", "save_core",
                    "close_project"]


def _zynq_7000(clock: int, bits: int) -> tuple[list[str], dict[str, str]]:
    rule = "xilinx.com:bd_rule:processing_system7"
    settings = [
        f"PCW_FPGA0_PERIPHERAL_FREQMHZ={clock}", "PCW_USE_M_AXI_GP0=1", "PCW_USE_M_AXI_GP1=0",
        "PCW_USE_S_AXI_HP0=1", f"PCW_S_AXI_HP0_DATA_WIDTH={bits}",
        "PCW_USE_S_AXI_HP1=1", f"PCW_S_AXI_HP1_DATA_WIDTH={bits}",
        "PCW_USE_FABRIC_INTERRUPT=1", "PCW_IRQ_F2P_INTR=1",
    ]
    lines = [
        "create_bd_cell xilinx.com:ip:processing_system7 ps",
        f"apply_bd_automation {rule} make_external {{FIXED_IO, DDR}} apply_board_preset 1 ps",
        *(f"set_property ps CONFIG.{s}" for s in settings),
    ]
    return lines, {
        "clock": "ps/FCLK_CLK0", "reset": "ps/FCLK_RESET0_N", "irq": "ps/IRQ_F2P",
        "sinks": "ps/M_AXI_GP0_ACLK ps/S_AXI_HP0_ACLK ps/S_AXI_HP1_ACLK",
        "control": "ps/M_AXI_GP0", "program": "ps/S_AXI_HP1", "data": "ps/S_AXI_HP0",
        "program_segment": "ps/S_AXI_HP1/HP1_DDR_LOWOCM",
        "data_segment": "ps/S_AXI_HP0/HP0_DDR_LOWOCM", "base": "0x40000000",
    }  # fmt: skip


def _zynq_ultrascale(clock: int, bits: int) -> tuple[list[str], dict[str, str]]:
    settings = [
        f"PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ={clock}",
        "PSU__USE__M_AXI_GP0=1", "PSU__USE__M_AXI_GP1=0", "PSU__USE__M_AXI_GP2=0",
        "PSU__USE__S_AXI_GP2=1", f"PSU__SAXIGP2__DATA_WIDTH={bits}",
        "PSU__USE__S_AXI_GP3=1", f"PSU__SAXIGP3__DATA_WIDTH={bits}", "PSU__USE__IRQ0=1",
    ]
    lines = [
        "create_bd_cell xilinx.com:ip:zynq_ultra_ps_e ps",
        "apply_bd_automation xilinx.com:bd_rule:zynq_ultra_ps_e apply_board_preset 1 ps",
        *(f"set_property ps CONFIG.{s}" for s in settings),
    ]
    return lines, {
        "clock": "ps/pl_clk0", "reset": "ps/pl_resetn0", "irq": "ps/pl_ps_irq0",
        "sinks": "ps/maxihpm0_fpd_aclk ps/saxihp0_fpd_aclk ps/saxihp1_fpd_aclk",
        "control": "ps/M_AXI_HPM0_FPD", "program": "ps/S_AXI_HP1_FPD",
        "data": "ps/S_AXI_HP0_FPD", "program_segment": "ps/SAXIGP3/HP1_DDR_LOW",
        "data_segment": "ps/SAXIGP2/HP0_DDR_LOW", "base": "0xa0000000",
    }  # fmt: skip


def design_commands(board: str) -> list[str]:
    part, board_part, clock, bits, memory = BOARDS[board]
    make = _zynq_7000 if is_zynq_7000(board) else _zynq_ultrascale
    system, at = make(clock, bits)
    joints = ("control_0", "program_0", "data_0")
    sinks = [*at["sinks"].split(), "reset_0/slowest_sync_clk", "rasna_0/aclk",
             *(f"{j}/aclk" for j in joints)]
    return [
        f"create_project rasna part={part}",
        f"set_property rasna board_part={board_part}",
        "set_property rasna ip_repo_paths=IP", "update_ip_catalog", "create_bd_design rasna",
        *system,
        f"create_bd_cell {isa.IP_VLNV} rasna_0",
        "create_bd_cell xilinx.com:ip:proc_sys_reset reset_0",
        *(f"create_bd_cell xilinx.com:ip:smartconnect {j}" for j in joints),
        *(f"set_property {j} CONFIG.NUM_{side}=1" for j in joints for side in ("SI", "MI")),
        *(f"connect_bd_net {at['clock']} {sink}" for sink in sinks),
        f"connect_bd_net {at['reset']} reset_0/ext_reset_in",
        *(f"connect_bd_net reset_0/peripheral_aresetn {cell}/aresetn"
          for cell in ("rasna_0", *joints)),
        f"connect_bd_net rasna_0/irq {at['irq']}",
        f"connect_bd_intf_net {at['control']} control_0/S00_AXI",
        "connect_bd_intf_net control_0/M00_AXI rasna_0/s_axi",
        "connect_bd_intf_net rasna_0/m_axi_program program_0/S00_AXI",
        f"connect_bd_intf_net program_0/M00_AXI {at['program']}",
        "connect_bd_intf_net rasna_0/m_axi_data data_0/S00_AXI",
        f"connect_bd_intf_net data_0/M00_AXI {at['data']}",
        f"assign_bd_address offset={at['base']} range=0x1000 ps/Data rasna_0/s_axi/reg0",
        f"assign_bd_address offset=0x0 range={memory:#x} rasna_0/m_axi_program "
        f"{at['program_segment']}",
        f"assign_bd_address offset=0x0 range={memory:#x} rasna_0/m_axi_data "
        f"{at['data_segment']}",
        "validate_bd_design", "save_bd_design", "make_wrapper rasna.bd",
        "add_files rasna_wrapper.v", "set_property sources_1 top=rasna_wrapper",
        "update_compile_order sources_1", "generate_target all rasna.bd", "close_project",
    ]  # fmt: skip


def kernel_commands(board: str, target: str, root: str) -> list[str]:
    part, _, clock, _, _ = BOARDS[board]
    macro = "RASNA_TARGET_" + TARGETS[target].name.upper().replace("-", "_")
    return [
        "open_project hls", "set_top rasna_vitis",
        f"add_files rasna_vitis.cpp -cflags {{-std=c++17 -fwrapv -I{root}/hls -D{macro}}}",
        "open_solution -reset solution -flow_target vivado", f"set_part {part}",
        f"create_clock -period {1000 / clock:.3f} -name default",
        "config_interface -m_axi_addr64", "config_interface -m_axi_max_widen_bitwidth 64",
        "config_interface -m_axi_conservative_mode=true", "csynth_design", "close_project",
    ]


SYNTHESIS = ["open_project rasna.xpr", "reset_run synth_1", "launch_runs synth_1",
             "wait_on_run synth_1", "open_run synth_1",
             "report_utilization utilization_synthesis.rpt", "close_project"]
IMPLEMENTATION = ["open_project rasna.xpr", "reset_run impl_1", "launch_runs impl_1",
                  "wait_on_run impl_1", "open_run impl_1", "report_utilization utilization.rpt",
                  "report_timing_summary timing.rpt", "write_bitstream rasna.bit",
                  "close_project"]
