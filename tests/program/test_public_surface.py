"""``import rasna``: cheap, without torch, and its two functions stay functions."""

import inspect
import subprocess
import sys

import pytest

import rasna
from tests.messages import refuses


def _python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


BLOCK_TORCH = "import sys; sys.modules['torch'] = None\n"


def test_import_loads_nothing_heavy():
    code = "import sys, rasna; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    assert _python(code) == "[]"


def test_import_takes_less_than_150_ms():
    """Processor time, so that a busy machine does not matter."""
    code = "import time; t = time.process_time(); import rasna; print(time.process_time() - t)"
    assert min(float(_python(code)) for _ in range(3)) < 0.15


def test_load_and_runtimes_work_without_torch(tmp_path):
    code = BLOCK_TORCH + (
        "sys.path.insert(0, '.')\n"
        "import rasna\n"
        "from tests.program.samples import conv_sample\n"
        f"path = {str(tmp_path / 'm.rasna')!r}\n"
        "conv_sample().program.save(path)\n"
        "program = rasna.load(path)\n"
        "assert rasna.RuntimeCSim and rasna.Runtime\n"
        "try:\n"
        "    program.to_runtime('none.so')\n"
        "except rasna.RuntimeObjectError as error:\n"
        "    print(error)\n"
    )
    assert _python(code) == (
        "none.so: there is no such file; make sim-so builds the simulator of a target"
    )


def test_tune_and_compile_say_that_torch_is_missing():
    code = BLOCK_TORCH + (
        "import rasna\n"
        "for call in (rasna.tune, rasna.compile, rasna.check):\n"
        "    try:\n"
        "        call(None)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    rest = "needs PyTorch, which is not installed: pip install torch; rasna.load and the runtimes"
    lines = _python(code).splitlines()
    names = ("tune", "compile", "check")
    assert lines == [f"rasna.{name} {rest} work without it" for name in names]


def test_functions_stay_functions_after_their_packages_are_imported():
    pytest.importorskip("torch")
    code = (
        "import sys, rasna\n"
        "import rasna.compile, rasna.tune\n"
        "from rasna.compile import compile as inner\n"
        "assert inspect.isfunction(rasna.compile) and inspect.isfunction(rasna.tune)\n"
        "assert inner is not rasna.compile\n"
        "assert inspect.ismodule(sys.modules['rasna.compile'])\n"
    )
    _python("import inspect\n" + code)


def test_the_signatures_are_the_documented_ones():
    assert str(inspect.signature(rasna.tune)) == (
        "(model: 'Any', sp: 'float' = 0.8, ab: 'int' = 8, wb: 'int' = 8, ib: 'int' = 17, "
        "chpad: 'bool' = True, strategy: 'str' = 'auto') -> 'Any'"
    )
    assert str(inspect.signature(rasna.compile)) == (
        "(model: 'Any', *samples: 'Any', channel_last: 'bool | None' = None, "
        "target: 'Any' = 'pynq-z2', until: 'Any' = None) -> 'Program'"
    )
    assert str(inspect.signature(rasna.check)) == (
        "(model: 'Any', *samples: 'Any', channel_last: 'bool | None' = None, "
        "target: 'Any' = 'pynq-z2', until: 'Any' = None) -> 'Report'"
    )


def test_every_public_name_exists():
    assert all(getattr(rasna, name) is not None for name in rasna.__all__)
    assert set(rasna.__all__) <= set(dir(rasna))


def test_an_unknown_name_is_an_attribute_error():
    with refuses(AttributeError, "module 'rasna' has no attribute 'nothing'"):
        _ = rasna.nothing


def test_errors_are_rasna_errors_and_the_usual_ones():
    assert issubclass(rasna.RasnaFileError, (rasna.RasnaError, ValueError))
    for name in rasna.__all__:
        if name.endswith("Error"):
            assert issubclass(getattr(rasna, name), rasna.RasnaError)
    assert issubclass(rasna.TargetMismatchError, ValueError)
    assert issubclass(rasna.RasnaTypeError, TypeError)
