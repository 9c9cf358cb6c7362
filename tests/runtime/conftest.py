"""Runtime objects for the tests: the real simulator and small fakes in C."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rasna.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
FAKE_SOURCE = Path(__file__).resolve().parent / "fake_object.c"


@pytest.fixture(scope="session")
def simulator():
    """simulator(target, exact=False) → path of the object, built when sources have changed."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import build_sim

    def build(target: str = "tiny", exact: bool = False) -> str:
        try:
            return str(build_sim.build(target, ROOT / "build", exact))
        except build_sim.BuildError as error:
            pytest.skip(str(error))

    return build


@pytest.fixture
def fake_object(tmp_path):
    """fake_object(name, **macros) → path of an object compiled from fake_object.c."""
    compiler = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")

    def build(name: str = "fake.so", **macros: object) -> str:
        macros.setdefault("FAKE_HASH", f'"{TARGETS["tiny"].config_hash}"')
        path = tmp_path / name
        flags = [f"-D{key}={value}" for key, value in macros.items()]
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", f"-I{ROOT / 'sim'}", *flags, "-o", str(path),
             str(FAKE_SOURCE)],
            check=True,
        )
        return str(path)

    return build
