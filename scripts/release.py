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
from release_run import RunError, run_object
from release_sbom import sbom_text

from rasna.errors import BuildError
from rasna.simbuild import PLATFORMS, make_object, zig_compiler
from rasna.targets import TARGETS

CHECKSUMS = "SHA256SUMS"
PAGE = """# Rasna {version}

| file | what |
|---|---|
| `{wheel}` | the Python package |
| `{archive}` | the source archive: the repository, with every `make` target |
| `rasna-<target>-<platform>` | a simulator, see below |
| `{sbom}` | the bill of materials, CycloneDX JSON |
| `{checksums}` | checksums; `sha256sum -c {checksums}` compares |

A Program runs with Python 3.10 or later, NumPy, the wheel and the simulator of its target. No
compiler is needed, and no PyTorch:

```
{install}```

```python
{lines}```

Without `--no-deps` pip installs PyTorch too, for `rasna.tune`, `rasna.compile` and `rasna.check`.
Install from the file: the package that an index has under the name `rasna` is not this project.

## Simulators

"How it was run": ten random programs, each with every loop that the processor has, compared word
for word with the golden model when these files were made. A file that is "built, not run" comes
from the same sources and compiler and has not been loaded by anybody yet.

| file | for | how it was run |
|---|---|---|
{rows}
"""
INSTALL = """python3 -m venv venv
venv/bin/pip install numpy
venv/bin/pip install --no-deps --no-index dist/rasna-*.whl
"""
LINES = """import numpy as np
import rasna
runtime = rasna.load("model.rasna").to_runtime("dist/rasna-pynq-z2-linux-x86_64.so")
x = np.load("x.npy")    # one input or a batch of them, channels last
print(runtime(x))
"""


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
    rows = "\n".join(f"| `{name}` | {title} | {how} |" for name, title, how in simulators)
    (folder / "README.md").write_text(PAGE.format(
        version=version, wheel=wheel.name, archive=archive.name, sbom=sbom.name,
        checksums=CHECKSUMS, install=INSTALL, lines=LINES, rows=rows,
    ), encoding="utf-8")
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
