"""README.md, README.ja.md and docs/: they say the same, and what they say exists and runs."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import rasna
from rasna.compile.operators.registry import FUNCTIONS, METHODS, MODULES
from rasna.runtime import RuntimeCSim
from rasna.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, JAPANESE = ROOT / "README.md", ROOT / "README.ja.md"
PAGES = [ENGLISH, JAPANESE, *sorted((ROOT / "docs").glob("*.md"))]
SEED = 0


def code_blocks(text: str) -> list[str]:
    """Fenced blocks with their language, in order."""
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    """The text without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def inline_code(text: str) -> list[str]:
    return sorted(re.findall(r"`([^`]+)`", prose(text)))


def headings(text: str) -> list[int]:
    """Levels of the headings, in order."""
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]


def table_shapes(text: str) -> list[int]:
    """Cells of every table row, in order."""
    return [line.count("|") - 1 for line in prose(text).splitlines() if line.startswith("|")]


def markers(text: str) -> list[str]:
    return re.findall(r"<!--.*?-->", text)


def links(text: str) -> list[str]:
    """Relative link targets without the part behind #."""
    found = re.findall(r"\]\(([^)]+)\)", prose(text))
    return [link.split("#")[0] for link in found if "://" not in link and link.split("#")[0]]


def make_targets(text: str) -> set[str]:
    """Targets of the make commands in fenced blocks and inline code."""
    code = code_blocks(text) + inline_code(text)
    return {t for part in code for t in re.findall(r"\bmake ([a-z][a-z-]*)", part)}


def differences(english: str, japanese: str) -> list[str]:
    """Which of the things that both languages share are not the same."""
    shared = (code_blocks, inline_code, headings, table_shapes, markers, make_targets)
    found = [view.__name__ for view in shared if view(english) != view(japanese)]
    both = [sorted(set(links(text)) - {"README.md", "README.ja.md"})
            for text in (english, japanese)]
    return found + (["links"] if both[0] != both[1] else [])


def test_both_languages_have_the_same_commands_code_and_structure():
    english, japanese = ENGLISH.read_text(encoding="utf-8"), JAPANESE.read_text(encoding="utf-8")
    assert len(code_blocks(english)) >= 4
    assert differences(english, japanese) == []


@pytest.mark.parametrize(
    ("old", "new", "noticed"),
    [
        ("sp=0.8, ab=8", "sp=0.7, ab=8", "code_blocks"),
        ("`make fit`", "`make fitness`", "make_targets"),
        ("`ceil_mode`", "ceil_mode", "inline_code"),
        ("(docs/isa.md)", "(docs/asi.md)", "links"),
        ("\n## ", "\n### ", "headings"),
    ],
)
def test_a_difference_between_the_languages_is_noticed(old, new, noticed):
    english, japanese = ENGLISH.read_text(encoding="utf-8"), JAPANESE.read_text(encoding="utf-8")
    assert old in japanese
    assert noticed in differences(english, japanese.replace(old, new, 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_command_is_a_target_of_the_makefile(page):
    makefile = (ROOT / "Makefile").read_text()
    # those without a help text serve other targets
    existing = set(re.findall(r"^([a-z][a-z-]*):(?!=).*##", makefile, re.MULTILINE))
    named = make_targets(page.read_text(encoding="utf-8"))
    assert not named - existing, f"{page.name} names {named - existing}"
    if page in (ENGLISH, JAPANESE):
        assert named == existing, f"{page.name} leaves out {existing - named}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_resolves(page):
    found = links(page.read_text(encoding="utf-8"))
    broken = [link for link in found if not (page.parent / link).exists()]
    assert not broken, f"{page.name} links to {broken}"


def test_the_index_lists_every_page_of_docs():
    listed = links((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages and pages <= set(listed), f"docs/README.md leaves out {pages - set(listed)}"


def _block_with(text: str) -> str:
    """The body of the only block of README.md with this text."""
    found = [b for b in code_blocks(ENGLISH.read_text(encoding="utf-8")) if text in b]
    assert len(found) == 1
    return "\n".join(found[0].splitlines()[1:-1])


@pytest.mark.parametrize(
    ("name", "function"),
    [("tune", rasna.tune), ("compile", rasna.compile), ("simulator", rasna.simulator),
     ("runtime", RuntimeCSim.__call__)],
)
def test_the_signatures_are_those_of_the_code(name, function):
    calls = [line.value for line in ast.parse(_block_with("ab=8")).body]
    call = next(c for c in calls if ast.unparse(c.func).split(".")[-1] == name)
    named = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    defaults = {
        p.name: p.default for p in inspect.signature(function).parameters.values()
        if p.default is not p.empty
    }
    assert named == defaults


def test_the_table_of_targets_is_that_of_the_code():
    rows = re.findall(
        r"^\| `(\S+)` \| (\d+) \| (\d+) \| (\d+) KiB \| (\d+) MHz \| (.*) \|$",
        ENGLISH.read_text(encoding="utf-8"), re.MULTILINE,
    )
    told = {name: tuple(map(int, numbers)) for name, *numbers, _ in rows}
    assert told == {
        t.name: (t.slices, t.macs_per_cycle, t.slices * t.map_bytes // 1024, t.clock_mhz)
        for t in TARGETS.values()
    }
    assert all(", ".join(TARGETS[name].boards) in boards for name, *_, boards in rows)


def support_table() -> list[list[str]]:
    """Cells of the rows operation, supported, refused."""
    text = ENGLISH.read_text(encoding="utf-8")
    lines = text.split("| operation | supported | refused |")[1].split("\n\n")[0].splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in lines]


def test_the_table_of_operations_agrees_with_the_compiler():
    wrong, checked = [], 0
    for operation, _, refused in support_table():
        for word in re.findall(r"\w+", operation):
            if isinstance(getattr(nn, word, None), type):
                checked += 1
                wrong += [word] if getattr(nn, word) not in MODULES else []
        for word in re.findall(r"\w+", refused.replace("Dropout that", "")):
            if isinstance(getattr(nn, word, None), type):
                checked += 1
                wrong += [word] if getattr(nn, word) in MODULES else []
            elif callable(getattr(torch, word, None)):
                checked += 1
                wrong += [word] if getattr(torch, word) in FUNCTIONS or word in METHODS else []
    assert checked > 30
    assert not wrong, f"README.md is wrong about {wrong}"


def small_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
    )  # fmt: skip


def test_the_five_lines_run_and_give_what_the_model_computes(tmp_path, monkeypatch):
    if not (ROOT / "build" / "rasna-pynq-z2.so").exists():
        pytest.fail("build/rasna-pynq-z2.so is not there; build it with: make sim-so")
    print(f"seed {SEED}; repeat: pytest {__file__} -k five_lines")
    torch.manual_seed(SEED)
    (tmp_path / "build").symlink_to(ROOT / "build")
    monkeypatch.chdir(tmp_path)
    samples = torch.randn(8, 12, 12, 3)
    names = {"rasna": rasna, "model": small_model(), "samples": samples, "x": samples}
    exec(_block_with('program.save("model.rasna")'), names)
    with torch.no_grad():
        expected = names["model"](samples.permute(0, 3, 1, 2)).numpy()
    assert (tmp_path / "model.rasna").stat().st_size > 0
    assert names["y"].shape == (8, 5)
    assert np.ptp(names["y"]) > 0
    assert np.array_equal(names["y"], expected)
