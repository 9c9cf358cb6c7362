"""tests/conftest.py and scripts/test_report.py: every skip is shown, and allowed or a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import test_report  # noqa: E402

TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.skipif(True, reason="no wind")
def test_sails(): pass

@pytest.mark.parametrize("ship", ["a b", "c"])
def test_floats(ship): pytest.skip(f"no water for {ship}")
"""


@pytest.fixture
def run(tmp_path):
    """run(text, *options): a run of these tests, which leaves a report → the folder of reports."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    folder = tmp_path / "reports"

    def run(text: str = TESTS, *options: str) -> Path:
        (tmp_path / "test_ship.py").write_text(text)
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
            cwd=tmp_path, env={**os.environ, "RASNA_TEST_REPORTS": str(folder)},
            capture_output=True, timeout=120, check=False,
        )
        return folder

    return run


def judge(folder: Path, allowed: str) -> int:
    """Exit status with this list of allowed skips."""
    path = folder.parent / "allowed.txt"
    path.write_text(allowed)
    return test_report.main([str(folder), "--allowed", str(path)])


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "xdist"])
def test_allowed_skips_pass_and_each_is_shown_with_its_reason(run, workers, capsys):
    assert judge(run(TESTS, *workers), "no wind | calm\nno water for * | a dock\n") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("1 passed, 3 skipped in ")
    assert sorted(lines[1:-1]) == sorted([
        "skipped 1: no wind", "  allowed: calm", "  test_ship.py::test_sails",
        "skipped 1: no water for a b", "  allowed: a dock", "  test_ship.py::test_floats[a b]",
        "skipped 1: no water for c", "  allowed: a dock", "  test_ship.py::test_floats[c]",
    ])


def test_a_skip_that_no_line_allows_fails(run, capsys):
    assert judge(run(), "# calm\nno water for * | a dock\n") == 1
    out = capsys.readouterr().out
    assert "skipped 1: no wind\n  NOT ALLOWED\n" in out
    assert "skips that are not allowed: 1 reasons; install what they name, or add a line" in out


def test_a_failure_fails_and_runs_are_added_up(run, capsys):
    run("def test_a(): pass\ndef test_b(): pass\n")
    assert judge(run("def test_a(): assert 0\ndef test_b(): pass\n"), "") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 runs of the tests"
    assert lines[-1].startswith("1 failed, 3 passed in ")


def test_a_module_that_is_skipped_or_breaks_as_a_whole_counts(run, capsys):
    folder = run("import pytest\npytest.skip('no sea', allow_module_level=True)\n")
    assert judge(folder, "no sea | inland\n") == 1  # nothing passed
    run("import no_such_module\n")
    assert judge(folder, "no sea | inland\n") == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 failed, 0 passed, 1 skipped in ")


def test_the_skipped_tests_can_be_given_to_pytest_again(run, capsys):
    assert test_report.main([str(run()), "--skipped"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "test_ship.py::test_sails",
        "test_ship.py::test_floats[a b]",
        "test_ship.py::test_floats[c]",
    ]


def test_no_report_at_all_is_an_error(tmp_path):
    folder = tmp_path / "reports"
    with pytest.raises(SystemExit) as caught:
        judge(folder, "")
    assert str(caught.value) == (
        f"{folder} holds no report of a run; set RASNA_TEST_REPORTS to it for the tests"
    )


def test_a_line_without_its_reason_is_named():
    with pytest.raises(ValueError) as caught:
        test_report.read_allowed("# a | b\n\nno wind\n")
    assert str(caught.value) == "line 3: 'pattern | why' is needed, found 'no wind'"


def test_the_list_of_the_repository_is_read():
    allowed = test_report.read_allowed(test_report.ALLOWED.read_text())
    assert allowed and not any(pattern in ("*", "") for pattern, _ in allowed)
