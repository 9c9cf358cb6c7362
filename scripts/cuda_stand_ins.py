"""Empty stand-ins for the CUDA libraries that PyTorch's default Linux wheel is linked with.

Without them `import torch` fails, although nothing on a processor calls them. They stand in for
gigabytes of downloads in `make test-versions`; every function answers that no CUDA device is there.
For tests alone: a user installs what pip brings.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

NO_DEVICE = 100  # cudaErrorNoDevice
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|util)|ld-linux.*)\.so")
CUDA_NAME = re.compile(r"(cu|nv|nccl)")


def readelf(option: str, path: Path) -> str:
    return subprocess.run(
        ["readelf", option, "-W", str(path)], capture_output=True, text=True, check=True
    ).stdout


def objects(torch: Path) -> list[Path]:
    """Shared objects of an installed PyTorch."""
    return [*torch.glob("lib/*.so*"), *torch.glob("_C*.so")]


def missing_libraries(paths: list[Path]) -> list[str]:
    """Libraries that these need and that are neither among them nor the system's, sorted."""
    names = {path.name for path in paths}
    needed = {n for path in paths for n in re.findall(r"NEEDED.*\[(.*?)\]", readelf("-d", path))}
    return sorted(n for n in needed - names if not SYSTEM.match(n))


def library_versions(paths: list[Path]) -> dict[str, str]:
    """Symbol version → the library that has to define it."""
    found, library = {}, ""
    for path in paths:
        for line in readelf("-V", path).splitlines():
            if match := re.search(r"File: (\S+)", line):
                library = match[1]
            elif match := re.search(r"Name: (\S+)\s+Flags", line):
                found[match[1]] = library
    return found


def undefined_symbols(paths: list[Path]) -> set[tuple[str, str]]:
    """(symbol, version or "") that these use and none of them defines."""
    used, defined = set(), set()
    row = re.compile(r"\s*\d+: \S+\s+\S+ \S+\s+(\S+)\s+\S+\s+(\S+) ([^\s@]+)@*(\S*)")
    for path in paths:
        for line in readelf("--dyn-syms", path).splitlines():
            if match := row.match(line):
                binding, section, name, version = match.groups()
                if section != "UND":
                    defined.add(name)
                elif binding != "WEAK":
                    used.add((name, version))
    return {(name, version) for name, version in used if name not in defined}


def write_library(folder: Path, name: str, symbols: dict[str, set[str]]) -> None:
    """A shared library that defines these symbols by version; "" is none."""
    source, script = folder / "stand_in.c", folder / "stand_in.map"
    names = sorted(set().union(*symbols.values()))
    source.write_text("".join(f"int {n}(void) {{ return {NO_DEVICE}; }}\n" for n in names))
    script.write_text("".join(
        f"{version} {{ global: {' '.join(f'{n};' for n in sorted(members))} }};\n"
        if members else f"{version} {{}};\n"
        for version, members in symbols.items() if version
    ))
    versions = [f"-Wl,--version-script={script}"] if script.read_text() else []
    subprocess.run(
        ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{name}", *versions,
         str(source), "-o", str(folder / name)],
        check=True,
    )


def write_stand_ins(torch: Path, folder: Path) -> list[str]:
    """Libraries in ``folder`` for LD_LIBRARY_PATH; ``torch`` is the installed package's folder."""
    paths = objects(torch)
    libraries, versions = missing_libraries(paths), library_versions(paths)
    symbols: dict[str, dict[str, set[str]]] = {name: defaultdict(set) for name in libraries}
    for version, library in versions.items():
        if library in symbols:
            symbols[library][version] = set()
    plain = set()  # whose library is not told: in each that has no versions
    for name, version in undefined_symbols(paths):
        if versions.get(version) in symbols:
            symbols[versions[version]][version].add(name)
        elif not version and CUDA_NAME.match(name):
            plain.add(name)
    folder.mkdir(parents=True, exist_ok=True)
    for library, members in symbols.items():
        write_library(folder, library, members or {"": plain})
    return libraries
