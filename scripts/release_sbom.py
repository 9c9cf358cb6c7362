"""The software bill of materials of a release, CycloneDX 1.6 in JSON."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

# What ziglang links into every simulator, beside what is compiled from sim/ and hls/.
LLVM_PARTS = ("libc++", "libc++abi", "libunwind", "compiler-rt")
LLVM_LICENSE = "Apache-2.0 WITH LLVM-exception"
ONLY_WITH_TORCH = "for rasna.tune, rasna.compile and rasna.check only"


def sbom_text(version: str, files: list[Path], requirements: list[str]) -> str:
    """The bill of materials of the files of a release.

    requirements: of the wheel, as its metadata has them. Every file is a component with its
    SHA-256; what is linked into the simulators and what the wheel needs are others.
    """
    bom = Bom()
    product = _component("rasna", version, ComponentType.LIBRARY, description="Rasna, proprietary")
    bom.metadata.component = product
    zig = importlib.metadata.version("ziglang")
    bom.metadata.tools.components.add(
        _component("ziglang", zig, ComponentType.APPLICATION, "MIT", purl=_pypi("ziglang", zig))
    )
    parts = [_component(name, llvm_version(), ComponentType.LIBRARY, LLVM_LICENSE)
             for name in LLVM_PARTS]
    # the start-up code of a DLL; ziglang does not say which version
    windows = _component("mingw-w64 runtime", None, ComponentType.LIBRARY, "ZPL-2.1")
    needed = [_requirement(text) for text in requirements if "extra ==" not in text]
    made = [_file(path) for path in files]
    bom.components.update([*parts, windows, *needed, *made])
    for component in made:
        bom.register_dependency(component, _linked(component.name, parts, windows, needed))
    bom.register_dependency(product, made)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _linked(
    name: str, parts: list[Component], windows: Component, needed: list[Component]
) -> list[Component]:
    """What a file of the release contains or needs."""
    if name.endswith((".so", ".dylib")):
        return parts
    return [*parts, windows] if name.endswith(".dll") else needed


def llvm_version() -> str:
    """Version of the LLVM in ziglang, which its C++ library belongs to."""
    text = subprocess.run(
        [sys.executable, "-m", "ziglang", "c++", "--version"], capture_output=True, text=True,
        check=True,
    ).stdout
    found = re.search(r"clang version ([\d.]+)", text)
    return found.group(1) if found else "unknown"


def _pypi(name: str, version: str | None = None) -> PackageURL:
    return PackageURL("pypi", name=name, version=version)


def _component(
    name: str, version: str | None, kind: ComponentType, license: str = "", **fields: object
) -> Component:
    licenses = [LicenseFactory().make_from_string(license)] if license else []
    return Component(name=name, version=version, type=kind, licenses=licenses,
                     bom_ref=f"{name}@{version}" if version else name, **fields)


def _requirement(text: str) -> Component:
    """A package that the wheel asks for; a range has no version."""
    wanted = Requirement(text)
    optional = wanted.name == "torch"
    return Component(
        name=wanted.name, type=ComponentType.LIBRARY, bom_ref=f"requirement:{wanted.name}",
        scope=ComponentScope.OPTIONAL if optional else ComponentScope.REQUIRED,
        description=f"{text} ({ONLY_WITH_TORCH})" if optional else text, purl=_pypi(wanted.name),
    )


def _file(path: Path) -> Component:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Component(name=path.name, type=ComponentType.FILE, bom_ref=f"file:{path.name}",
                     hashes=[HashType.from_hashlib_alg("sha256", digest)])
