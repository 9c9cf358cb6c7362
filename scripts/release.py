#!/usr/bin/env python3
"""Write everything that users download to dist/.

The wheel, the source archive, a simulator for every target and platform, a page that says which
file is for whom and how it was run, a bill of materials, and the checksums of all of them.

Needs the Python packages ziglang, build, cyclonedx-python-lib and numpy; `make release` installs
them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]

from packages import PackageError, build_both
from release_page import CHECKSUMS, page_text
from release_run import RunError, run_object
from release_sbom import sbom_text

from rasna.errors import BuildError
from rasna.simbuild import PLATFORMS, make_object, zig_compiler
from rasna.targets import TARGETS


def build_simulators(
    folder: Path, targets: list[str], platforms: list[str]
) -> list[tuple[str, str, str]]:
    """(file name, platform title, how it was run) of every simulator. Raises BuildError, RunError.
    """
    made = []
    for of in (PLATFORMS[name] for name in platforms):
        compiler = zig_compiler(of)
        if compiler is None:
            raise BuildError("the Python package ziglang is needed: pip install ziglang")
        for target in targets:
            path = folder / of.object_name(target)
            make_object(compiler, target, path)
            how = run_object(path, target, of)
            made.append((path.name, of.title, how))
            print(f"{path} ({path.stat().st_size:,} bytes): {how}", flush=True)
    return made


def wheel_metadata(wheel: Path) -> tuple[str, list[str]]:
    """(version, requirements) of a wheel."""
    with zipfile.ZipFile(wheel) as file:
        name = next(n for n in file.namelist() if n.endswith(".dist-info/METADATA"))
        found = Parser().parsestr(file.read(name).decode("utf-8"))
    return found["Version"], found.get_all("Requires-Dist", [])


def write_checksums(folder: Path, names: list[str]) -> None:
    """SHA256SUMS of the named files, in the format of sha256sum."""
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}" for n in sorted(names)]
    (folder / CHECKSUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def release(folder: Path, targets: list[str], platforms: list[str]) -> list[str]:
    """Write the release into ``folder``; names of what is older there are removed.

    Returns the names of the files. Raises BuildError, PackageError, RunError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("rasna-*"), *folder.glob("README.md"), *folder.glob(CHECKSUMS)]:
        old.unlink()
    archive, wheel = build_both(folder)
    simulators = build_simulators(folder, targets, platforms)
    version, requirements = wheel_metadata(wheel)
    names = [archive.name, wheel.name, *(name for name, *_ in simulators)]
    sbom = folder / f"rasna-{version}.cdx.json"
    files = [folder / name for name in names]
    sbom.write_text(sbom_text(version, files, requirements), encoding="utf-8")
    page = page_text(version, wheel.name, archive.name, sbom.name, simulators)
    (folder / "README.md").write_text(page, encoding="utf-8")
    names += [sbom.name, "README.md"]
    write_checksums(folder, names)
    return [*names, CHECKSUMS]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="directory (dist)")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="(all)")
    parser.add_argument("--platform", action="append", choices=list(PLATFORMS), help="(all)")
    options = parser.parse_args(arguments)
    try:
        names = release(
            options.out, options.target or list(TARGETS), options.platform or list(PLATFORMS)
        )
    except (BuildError, PackageError, RunError, OSError) as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    print(f"{options.out}: {len(names)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
