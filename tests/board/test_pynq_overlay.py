"""Files, boards and bitstreams: what is loaded, what is used again, what is refused."""

from __future__ import annotations

import hashlib
import json
import platform

import pytest
from board_device import Metadata, accelerator
from pynq.pl_server import global_state
from samples import S8, identity_program

import rasna
from rasna.errors import NotOnBoardError, RuntimeObjectError, TargetMismatchError
from rasna.runtime import board_machine, board_overlay


def program(target="tiny"):
    return identity_program([("x", (1, 2, 8), S8)], target=target)


def make(files, target="tiny"):
    return rasna.Runtime(program(target), str(files / "rasna.bit"))


def refusal(files, kind, target="tiny") -> str:
    with pytest.raises(kind) as caught:
        make(files, target)
    return str(caught.value)


def summary(files, **changes) -> None:
    """The JSON of the build beside the bitstream."""
    data = {
        "board": "pynq-z2", "target": "tiny", "config_hash": program().config_hash,
        **{f"{kind}_sha256": hashlib.sha256((files / f"rasna.{kind}").read_bytes()).hexdigest()
           for kind in ("bit", "hwh")},
    }  # fmt: skip
    (files / "rasna.json").write_text(json.dumps({**data, **changes}))


def test_a_missing_bitstream(model_board, tmp_path):
    model_board()
    assert refusal(tmp_path, RuntimeObjectError) == (
        f"{tmp_path}/rasna.bit does not exist; copy the .bit and the .hwh to the board"
    )


def test_a_missing_hwh(model_board, overlay_files):
    model_board()
    (overlay_files / "rasna.hwh").unlink()
    assert "rasna.hwh is missing; pynq reads addresses" in refusal(
        overlay_files, RuntimeObjectError
    )


@pytest.mark.parametrize("kind", ["bit", "hwh"])
def test_a_stale_file_is_noticed_by_the_summary(kind, model_board, overlay_files):
    device = model_board()
    summary(overlay_files)
    make(overlay_files).close()
    (overlay_files / f"rasna.{kind}").write_bytes(b"of another build")
    message = refusal(overlay_files, RuntimeObjectError)
    assert f"rasna.{kind} is not the file that was built" in message and "stale" in message
    assert device.num_downloads == 1


def test_a_hwh_without_the_accelerator(model_board, overlay_files):
    device = model_board()
    device.metadata = Metadata(accelerator("xilinx.com:ip:axi_dma:7.1"))
    assert "has no IP rasna:rasna:rasna_accelerator, but xilinx.com:ip:axi_dma:7.1" in refusal(
        overlay_files, RuntimeObjectError
    )


def test_another_version_of_the_ip_is_found(model_board, overlay_files):
    device = model_board()
    device.metadata = Metadata(accelerator("rasna:rasna:rasna_accelerator:2.7"))
    make(overlay_files).close()


def test_a_hwh_with_too_few_registers(model_board, overlay_files):
    device = model_board()
    device.metadata = Metadata(accelerator(addr_range=64))
    assert "64 bytes of registers, 72 are needed" in refusal(overlay_files, RuntimeObjectError)


def test_a_bitstream_for_another_board(model_board, overlay_files, monkeypatch):
    device = model_board()
    summary(overlay_files)
    monkeypatch.setenv("BOARD", "Pynq-Z1")
    message = refusal(overlay_files, RuntimeObjectError)
    assert "was built for the board pynq-z2, this is Pynq-Z1" in message
    assert device.num_downloads == 0
    monkeypatch.setenv("BOARD", "Pynq-Z2")
    make(overlay_files).close()


def test_a_bitstream_for_another_processor(model_board, overlay_files, monkeypatch):
    model_board()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "is for another board: its .hwh says zynq (armv7l), this is aarch64" in refusal(
        overlay_files, RuntimeObjectError
    )
    monkeypatch.setattr(platform, "machine", lambda: "armv7l")
    make(overlay_files).close()


def test_a_summary_that_is_no_json(model_board, overlay_files):
    model_board()
    (overlay_files / "rasna.json").write_text("{")
    assert "rasna.json: is not JSON" in refusal(overlay_files, RuntimeObjectError)


def test_another_target_is_refused_before_loading_when_there_is_a_summary(
    model_board, overlay_files
):
    device = model_board()
    summary(overlay_files)
    message = refusal(overlay_files, TargetMismatchError, "pynq-z2")
    assert "for target pynq-z2" in message and "is tiny" in message
    assert device.num_downloads == 0


def test_another_target_is_refused_by_the_registers(model_board, overlay_files):
    device = model_board()
    message = refusal(overlay_files, TargetMismatchError, "pynq-z2")
    assert "for target pynq-z2" in message and "is tiny" in message
    assert device.machine.num_runs == 0
    make(overlay_files).close()
    refusal(overlay_files, TargetMismatchError, "kv260")  # also when it is loaded already


def test_another_isa_version_is_refused(model_board, overlay_files):
    model_board().machine.isa_version = 9
    assert "has ISA version 2" in refusal(overlay_files, TargetMismatchError)


def test_a_bitstream_is_loaded_once_for_several_runtimes(model_board, overlay_files):
    device = model_board()
    with make(overlay_files), make(overlay_files):
        pass
    make(overlay_files).close()
    assert device.num_downloads == 1


def test_a_new_process_uses_what_is_on_the_board(model_board, overlay_files, monkeypatch):
    device = model_board()
    make(overlay_files).close()
    restart_kernel(device, monkeypatch)
    make(overlay_files).close()
    assert device.num_downloads == 1


def restart_kernel(device, monkeypatch) -> None:
    """The process forgets all; the board and pynq's note on disk stay."""
    monkeypatch.setattr(board_overlay, "_loaded", {})
    device.buffers.clear()
    for name in ("bitfile_name", "timestamp"):
        device.__dict__.pop(name, None)


def test_a_kernel_that_died_in_a_run_leaves_no_harm(model_board, overlay_files, monkeypatch):
    device = model_board()
    runtime = make(overlay_files)
    device.machine.stuck, device.machine.running = "run", True
    restart_kernel(device, monkeypatch)
    runtime._finalizer.detach()
    device.machine.hang = ""
    with make(overlay_files) as again:
        again.throughput_test(1)
    assert device.num_downloads == 1


def test_a_kernel_that_died_with_the_bus_hanging_needs_the_bitstream_again(
    model_board, overlay_files, monkeypatch
):
    monkeypatch.setattr(board_machine, "_RESET_SECONDS", 0.02)
    device = model_board()
    runtime = make(overlay_files)
    device.machine.stuck, device.machine.running = "bus", True
    restart_kernel(device, monkeypatch)
    runtime._finalizer.detach()
    make(overlay_files).close()
    assert device.num_downloads == 2


def test_a_note_about_another_bitstream_is_not_believed(model_board, overlay_files, monkeypatch):
    device = model_board()
    make(overlay_files).close()
    restart_kernel(device, monkeypatch)
    (overlay_files / "rasna.bit").write_bytes(b"another")
    make(overlay_files).close()
    assert device.num_downloads == 2


def test_a_note_that_cannot_be_read_loads_the_bitstream(model_board, overlay_files, monkeypatch):
    device = model_board()
    make(overlay_files).close()
    restart_kernel(device, monkeypatch)
    global_state._get_state_path().write_text("{")
    make(overlay_files).close()
    assert device.num_downloads == 2


def test_another_overlay_takes_the_place_only_when_nobody_uses_the_first(
    model_board, overlay_files
):
    device = model_board()
    (overlay_files / "other.bit").write_bytes(b"other")
    (overlay_files / "other.hwh").write_text("")
    first = make(overlay_files)
    with pytest.raises(RuntimeObjectError, match="used by 1 open runtimes; close"):
        rasna.Runtime(program(), str(overlay_files / "other.bit"))
    first.close()
    rasna.Runtime(program(), str(overlay_files / "other.bit")).close()
    assert device.num_downloads == 2


def test_an_overlay_that_pynq_refuses(model_board, overlay_files, monkeypatch):
    device = model_board()

    def download(bitstream, parser=None):
        raise RuntimeError("fpga manager says no")

    monkeypatch.setattr(device, "download", download)
    assert refusal(overlay_files, RuntimeObjectError) == (
        f"{overlay_files}/rasna.bit: pynq cannot load it: fpga manager says no"
    )


def test_no_device(monkeypatch, overlay_files):
    from pynq import Device

    monkeypatch.setattr(type(Device), "_devices", [], raising=False)
    monkeypatch.setattr(Device, "_devices", [], raising=False)
    for owner in (Device, type(Device)):
        if "_active_device" in vars(owner):
            monkeypatch.delattr(owner, "_active_device")
    message = refusal(overlay_files, NotOnBoardError)
    assert "pynq finds no device here (No Devices Found)" in message
