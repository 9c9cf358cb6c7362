"""The page of a release: which file is for whom, how to install it and how it was run."""

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


def page_text(
    version: str, wheel: str, archive: str, sbom: str, simulators: list[tuple[str, str, str]]
) -> str:
    """README.md of a release. simulators: (file name, platform, how it was run) of each."""
    rows = "\n".join(f"| `{name}` | {title} | {how} |" for name, title, how in simulators)
    return PAGE.format(
        version=version, wheel=wheel, archive=archive, sbom=sbom, checksums=CHECKSUMS,
        install=INSTALL, lines=LINES, rows=rows,
    )
