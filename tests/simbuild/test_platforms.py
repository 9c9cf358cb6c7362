"""The platforms of a release, and which of them this computer is."""

from __future__ import annotations

import platform

import pytest

from rasna.simbuild import PLATFORMS, local_platform


@pytest.mark.parametrize(
    ("system", "machine", "libc", "name"),
    [
        ("Linux", "x86_64", "glibc", "linux-x86_64"),
        ("Linux", "x86_64", "", None),
        ("Linux", "aarch64", "glibc", "linux-aarch64"),
        ("Linux", "armv7l", "glibc", "linux-armv7l"),
        ("Linux", "riscv64", "glibc", None),
        ("Darwin", "arm64", "", "macos-arm64"),
        ("Darwin", "x86_64", "", "macos-x86_64"),
        ("Windows", "AMD64", "", "windows-x86_64"),
        ("FreeBSD", "amd64", "", None),
    ],
)
def test_a_computer_is_known_by_system_processor_and_c_library(
    monkeypatch, system, machine, libc, name
):
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: (libc, ""))
    found = local_platform()
    assert (found.name if found else None) == name


def test_file_names_tell_target_and_platform():
    names = [p.object_name("pynq-z2") for p in PLATFORMS.values()]
    assert names == [
        "rasna-pynq-z2-linux-x86_64.so", "rasna-pynq-z2-linux-aarch64.so",
        "rasna-pynq-z2-linux-armv7l.so", "rasna-pynq-z2-macos-arm64.dylib",
        "rasna-pynq-z2-macos-x86_64.dylib", "rasna-pynq-z2-windows-x86_64.dll",
    ]  # fmt: skip
