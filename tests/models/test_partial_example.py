"""examples/partial.py runs: a compiled trunk, a head in PyTorch."""

import importlib.util
from pathlib import Path

from tests.networks import check

ROOT = Path(__file__).resolve().parents[2]


def test_the_split_model_classifies_as_the_whole_one(capsys):
    spec = importlib.util.spec_from_file_location("partial_example", ROOT / "examples/partial.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    (runtime, *_) = check.objects("pynq-z2")
    result = example.main(["--runtime", str(runtime), "--epochs", "4"])
    assert result["until"] == "trunk"
    assert result["float"] > 0.75 and abs(result["split"] - result["float"]) < 0.02
    assert "rasna.compile(model, …, until='trunk')" in capsys.readouterr().out
