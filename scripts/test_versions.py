"""Runs the quick tests on every Python that is here, with the oldest and the newest packages.

usage: python scripts/test_versions.py [PYTHON]...

Without arguments: python3.10 to python3.13 as PATH has them. Each pair of versions gets an
environment in build/versions, which is removed after its run. PyTorch is installed without the
CUDA libraries of its Linux wheel (cuda_stand_ins.py): about 800 MB to download for each.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import cuda_stand_ins

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "versions"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
# The lower bounds of pyproject.toml; a newer Python has wheels of newer versions only.
OLDEST = {"torch": "2.5.0", "numpy": "1.26.0"}
OLDEST_OF_PYTHON = {"3.13": {"torch": "2.5.0", "numpy": "2.1.0"}}
TORCH_NEEDS = ("filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec",
               "setuptools")
# What depends on PyTorch, NumPy or Python; the RTL and the C++ are the same for all.
TESTS = ("backend", "compile", "golden", "program", "programs", "runtime", "support", "tune")


def pairs(version: str) -> dict[str, dict[str, str]]:
    """Name of the pair → version of each package, "" for the newest."""
    return {
        "oldest": OLDEST_OF_PYTHON.get(version, OLDEST), "newest": dict.fromkeys(OLDEST, ""),
    }


def pin(package: str, version: str) -> str:
    return f"{package}=={version}" if version else package


def install(python: Path, packages: dict[str, str]) -> None:
    """PyTorch without what it depends on, its dependencies but CUDA, NumPy and pytest."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    torch, numpy = (pin(name, packages[name]) for name in ("torch", "numpy"))
    subprocess.run([*pip, "--no-deps", torch], check=True)
    subprocess.run([*pip, *TORCH_NEEDS, numpy, "pytest", "pytest-xdist"], check=True)


def environment_of(python: Path, stand_ins: Path) -> dict[str, str]:
    """Environment in which this Python imports torch and rasna."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    environment.pop("LD_LIBRARY_PATH", None)
    command = [str(python), "-c", "import torch"]
    if subprocess.run(command, env=environment, capture_output=True).returncode:
        code = "import sysconfig; print(sysconfig.get_path('platlib'))"
        packages = subprocess.run(
            [str(python), "-c", code], check=True, capture_output=True, text=True
        ).stdout.strip()
        cuda_stand_ins.write_stand_ins(Path(packages) / "torch", stand_ins)
        environment["LD_LIBRARY_PATH"] = str(stand_ins)
    return environment


def run_tests(interpreter: str, packages: dict[str, str], folder: Path) -> tuple[str, bool]:
    """(the versions in use, whether the tests pass) in an environment made for this."""
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    try:
        python = folder / "bin" / "python"
        install(python, packages)
        environment = environment_of(python, folder / "cuda")
        code = ("import platform, numpy, torch; print('Python', platform.python_version(), "
                "'torch', torch.__version__, 'numpy', numpy.__version__)")
        found = subprocess.run(
            [str(python), "-c", code], env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()
        print(found, flush=True)
        tests = [f"tests/{name}" for name in TESTS]
        done = subprocess.run(
            [str(python), "-m", "pytest", "-n", "2", "--dist", "loadfile", "-rs", "-m", "not long",
             *tests], env=environment, cwd=ROOT,
        )
        return found, not done.returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    interpreters = sys.argv[1:] or [p for v in PYTHONS if (p := shutil.which(f"python{v}"))]
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    results = []
    for interpreter in interpreters:
        done = subprocess.run([interpreter, "-c", code], capture_output=True, text=True)
        if done.returncode:
            print(f"{interpreter} does not run here and is left out")
            continue
        version = done.stdout.strip()
        for name, packages in pairs(version).items():
            results.append(run_tests(interpreter, packages, FOLDER / f"{version}-{name}"))
    print("\n".join(f"{'passed' if good else 'FAILED'}  {found}" for found, good in results))
    return int(not results or not all(good for _, good in results))


if __name__ == "__main__":
    sys.exit(main())
