"""Every row of docs/support.md is true: supported ones agree with PyTorch, refused ones say why."""

from __future__ import annotations

import copy
import re
import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch

from rasna.compile.operators.registry import FUNCTIONS, METHODS, MODULES
from rasna.compile.pipeline import flatten_outputs
from rasna.errors import CompileError
from tests.spelled.bounds import error_bounds
from tests.spelled.check import evaluate
from tests.support.cases import CASES, model_of
from tests.support.page import compile_case, read_verdicts, why

PAGE = Path(__file__).resolve().parents[2] / "docs" / "support.md"
VERDICTS = read_verdicts(PAGE.read_text(encoding="utf-8"))
CAST = 1e-6  # x.float() rounds the float64 reference to float32


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_row(case):
    assert case.name in VERDICTS, "docs/support.md: not up to date, regenerate with make generate"
    verdict, reason = VERDICTS[case.name]
    if verdict == "yes":
        _check_supported(case)
    else:
        with pytest.raises(CompileError) as error:
            compile_case(case)
        first = error.value.problems[0]
        assert why(first.reason, first.remedy) == reason
        assert str(first) in str(error.value) and first.remedy
        assert first.file == f"{case.name}.py" or not first.file
        assert first.node or first.file or first.place == "output"


def _check_supported(case) -> None:
    compiled = compile_case(case)
    model, samples = model_of(case)
    exact = copy.deepcopy(model).double()
    doubles = [s.double() for s in samples]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = flatten_outputs(exact(*[x.clone() for x in doubles]))
        values, bounds = error_bounds(compiled, exact, doubles)
    got = evaluate(compiled, samples)
    for w, v, b, g in zip(want, values, bounds, got, strict=True):
        w, v = w.double(), v.double()  # indices are integers
        assert w.shape == v.shape == g.shape
        slack = CAST * float(w.abs().max())
        assert float((w - v).abs().max()) <= slack, "the float graph is not what PyTorch computes"
        assert float(((torch.from_numpy(g) - w).abs() - b).max()) <= slack
        # noise has a ratio of 1; where everything is the same value there is no deviation
        assert float(b.median()) < 0.5 * max(float(w.std()), float(w.abs().mean()), 0.01)


def test_names_are_unique_and_the_page_has_no_other_rows():
    names = Counter(case.name for case in CASES)
    assert max(names.values()) == 1, [name for name, count in names.items() if count > 1]
    assert set(names) == set(VERDICTS)
    assert len(names) > 300
    supported = sum(verdict == "yes" for verdict, _ in VERDICTS.values())
    assert 0.5 < supported / len(names) < 0.95


def test_every_operation_of_the_compiler_has_a_row():
    text = " ".join(case.code for case in CASES)
    words = set(re.findall(r"\w+", text))
    modules = {kind.__name__ for kind in MODULES}
    assert not modules - words
    methods = set(re.findall(r"\.(\w+)\b", text)) | OPERATORS
    assert not set(METHODS) - methods
    functions = {function.__name__ for function in FUNCTIONS}
    assert not functions - words - OPERATORS - ALIASES


# what code spells with signs, and builtin functions that other names stand for
OPERATORS = {
    "add", "iadd", "sub", "isub", "mul", "imul", "truediv", "itruediv", "neg", "pos", "getitem",
    "getattr", "pow", "ipow", "dim", "ndimension", "size",
}  # fmt: skip
ALIASES = {
    "boolean_dispatch", "fn", "log_sigmoid", "special_expit", "special_erf", "special_erfc",
    "special_exp2", "special_expm1", "special_log1p", "_threshold",
}  # fmt: skip


@pytest.mark.parametrize(
    "old, new",
    [("| yes |", "| refused |"), ("is not supported", "is supported"), ("`x + y`", "`x - y`")],
)
def test_a_page_that_lies_is_noticed(old, new, monkeypatch):
    text = PAGE.read_text(encoding="utf-8").replace(old, new)
    lies = read_verdicts(text) != VERDICTS or text != PAGE.read_text(encoding="utf-8")
    assert lies
    if old == "| yes |":
        case = next(c for c in CASES if VERDICTS[c.name][0] == "yes")
        monkeypatch.setitem(VERDICTS, case.name, ("refused", "reason"))
        with pytest.raises(pytest.fail.Exception):
            test_row(case)
