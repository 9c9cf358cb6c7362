"""The parts for Vitis HLS as far as they can be checked without it: C++ compiles, the kernel's
adapter is clean Verilog with the ports that rtl/top expects.
"""

from __future__ import annotations

import re
import shutil
import subprocess

import build_rtl
import pytest
from build_sim import BuildError
from overlay_flow import ROOT

VITIS = ROOT / "overlay" / "vitis"
ADAPTER = VITIS / "rasna_top_kernel.sv"


def kernel_stub() -> str:
    """A module with the ports that the adapter connects: directions as the manual gives them."""
    text = ADAPTER.read_text()
    body = text[text.index("rasna_vitis u_vitis") :]
    ports = []
    for name in re.findall(r"\.(\w+)\([^)]*\)", body[: body.index(");")]):
        master = re.fullmatch(r"m_axi_(?:program|data)_(\w+)", name)
        channel = master[1] if master else ""
        inward = channel in ("AWREADY", "WREADY", "ARREADY") or (
            re.match(r"[RB]", channel) and channel not in ("RREADY", "BREADY")
        ) or (not master and name not in (
            "ap_ready", "ap_done", "ap_idle", "out_error", "out_error_ap_vld", "out_error_pc",
            "out_error_pc_ap_vld",
        ))
        ports.append((name, "input" if inward else "output", width_of(name, channel)))
    lines = ",\n".join(f"  {side} wire [{bits - 1}:0] {name}" for name, side, bits in ports)
    drives = "\n".join(f"  assign {name} = '0;" for name, side, _ in ports if side == "output")
    inputs = ", ".join(name for name, side, _ in ports if side == "input")
    return (
        f"module rasna_vitis (\n{lines}\n);\n{drives}\n  wire unused = &{{1'b0, {inputs}}};\n"
        "endmodule\n"
    )


def width_of(name: str, channel: str) -> int:
    if name in ("program_mem", "data_mem"):
        return 64
    if name.endswith("_base") or name in ("out_error", "out_error_pc"):
        return 32
    for ends, bits in (("ADDR", 64), ("DATA", 64), ("STRB", 8), ("LEN", 8), ("SIZE", 3),
                       ("BURST", 2), ("LOCK", 2), ("CACHE", 4), ("PROT", 3), ("QOS", 4),
                       ("REGION", 4), ("RESP", 2)):
        if channel.endswith(ends):
            return bits
    return 1


def test_the_adapter_is_clean_with_the_kernel_that_it_expects(tmp_path):
    try:
        environment = build_rtl.verilator_environment()
    except BuildError as error:
        pytest.skip(str(error))
    stub = tmp_path / "rasna_vitis.sv"
    stub.write_text(kernel_stub())
    done = subprocess.run(
        ["verilator", "--lint-only", "-Wall", "--top-module", "rasna_accelerator",
         "-Wno-DECLFILENAME", "-Wno-VARHIDDEN", f"-I{ROOT / 'rtl'}",
         *map(str, sorted((ROOT / "rtl" / "lib").glob("hls_axil.sv"))),
         *map(str, sorted((ROOT / "rtl" / "top").glob("*.sv"))), str(ADAPTER), str(stub)],
        env=environment, capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_the_adapter_has_the_ports_that_the_top_connects():
    top = (ROOT / "rtl" / "top" / "rasna_accelerator.sv").read_text()
    instance = top[top.index("rasna_top_kernel u_kernel (") :]
    connected = re.findall(r"\.(\w+)\(", instance[: instance.index(");\n")])
    text = ADAPTER.read_text()
    ports = re.findall(r"^    (?:input|output) wire (?:\[\d+:0\] )?(\w+),?$", text, re.M)
    assert len(ports) > 80 and sorted(ports) == sorted(connected)


def test_the_cpp_top_compiles_and_has_a_pragma_for_every_port(tmp_path):
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    source = VITIS / "rasna_vitis.cpp"
    done = subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-Wno-unknown-pragmas", "-fwrapv",
         f"-I{ROOT / 'hls'}", f"-I{ROOT / 'rtl' / 'include'}", "-DRASNA_TARGET_TINY", str(source)],
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    text = source.read_text()
    signature = text[text.index("rasna_vitis(") : text.index(") {")]
    names = re.findall(r"(\w+)(?:,|$)", signature)
    assert len(names) == 7
    assert sorted(re.findall(r"port=(\w+)", text)) == sorted([*names, "return"])
