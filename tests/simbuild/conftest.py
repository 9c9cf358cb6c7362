"""A simulator, and a compiler that makes copies of it at once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tiny_object() -> Path:
    """The simulator of tiny, as `make sim-so` builds it."""
    from rasna.errors import BuildError
    from rasna.simbuild import build

    try:
        return build("tiny", ROOT / "build")
    except BuildError as error:
        pytest.skip(str(error))


@dataclass
class FakeCompiler:
    path: Path
    log: Path

    @property
    def links(self) -> int:
        """How many objects it has linked."""
        return self.log.read_text().count("link\n") if self.log.exists() else 0


@pytest.fixture
def fake_compiler(tmp_path, tiny_object) -> FakeCompiler:
    """A g++ whose every object is a copy of the simulator of tiny."""
    fake = FakeCompiler(tmp_path / "g++", tmp_path / "log")
    fake.path.write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys\n"
        "if '--version' in sys.argv: sys.exit(print('g++ 12.2.0'))\n"
        "into = sys.argv[sys.argv.index('-o') + 1]\n"
        "if '-c' in sys.argv: sys.exit(open(into, 'w').close())\n"
        f"open({str(fake.log)!r}, 'a').write('link\\n')\n"
        f"shutil.copyfile({str(tiny_object)!r}, into)\n"
    )
    fake.path.chmod(0o755)
    return fake
