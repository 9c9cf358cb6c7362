"""The platforms that a release holds simulators for."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """An operating system and a processor.

    name : part of the file name, as in ``rasna-pynq-z2-linux-x86_64.so``
    title : for people
    machine : the processor as ``platform.machine()`` of Linux names it
    triple, cpu : what the compiler of ziglang is asked for; the oldest processor that is served
    suffix : of shared libraries
    """

    name: str
    title: str
    machine: str
    triple: str
    cpu: str
    suffix: str

    def object_name(self, target: str) -> str:
        """File name of the simulator of a target."""
        return f"rasna-{target}-{self.name}{self.suffix}"


PLATFORMS: dict[str, Platform] = {
    p.name: p
    for p in (
        Platform("linux-x86_64", "Linux on x86-64, glibc 2.17 or later", "x86_64",
                 "x86_64-linux-gnu.2.17", "x86_64", ".so"),
        Platform("linux-aarch64", "Linux on 64-bit Arm, glibc 2.17 or later", "aarch64",
                 "aarch64-linux-gnu.2.17", "generic", ".so"),
        Platform("linux-armv7l", "Linux on 32-bit Arm with NEON (hard float), glibc 2.17 or later",
                 "armv7l", "arm-linux-gnueabihf.2.17", "generic+v7a+neon", ".so"),
        Platform("macos-arm64", "macOS on Apple silicon", "aarch64",
                 "aarch64-macos", "apple_m1", ".dylib"),
        Platform("macos-x86_64", "macOS on x86-64", "x86_64",
                 "x86_64-macos", "x86_64", ".dylib"),
        Platform("windows-x86_64", "Windows on x86-64", "x86_64",
                 "x86_64-windows-gnu", "x86_64", ".dll"),
    )
}  # fmt: skip

_SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
_MACHINES = {"AMD64": "x86_64"}


def local_platform() -> Platform | None:
    """The platform that this Python runs on; None where a release has nothing for it."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    name = f"{_SYSTEMS.get(platform.system(), platform.system())}-{machine}"
    if name.startswith("linux-") and platform.libc_ver()[0] != "glibc":
        return None  # musl
    return PLATFORMS.get(name)
