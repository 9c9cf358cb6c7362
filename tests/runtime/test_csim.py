"""RuntimeCSim: real simulators, and fakes for what a real one never does."""

import gc
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import rasna
from rasna import isa
from rasna.errors import (
    ClosedError,
    RuntimeObjectError,
    SelfCheckError,
    TargetMismatchError,
)
from rasna.golden import evaluate
from rasna.program import Program, selfcheck_inputs
from rasna.runtime import library
from rasna.targets import TARGETS
from tests.messages import refuses
from tests.program.samples import S8, conv_sample, identity_program

ROOT = Path(__file__).resolve().parents[2]
TINY = TARGETS["tiny"].config_hash


def byte_program() -> Program:
    """One word in, one word out; the fake object copies it."""
    return identity_program([("x", (1, 1, 8), S8)])


def expected(sample, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Packed input (H, W, C) and output of the graph."""
    arrays = selfcheck_inputs(sample.program.inputs, seed)
    y = evaluate(sample.graph, arrays)["y2"]
    return arrays[0][0].transpose(1, 2, 0), y.transpose(1, 2, 0)


@pytest.mark.parametrize("exact", [False, True])
def test_the_simulator_computes_the_graph(simulator, exact):
    sample = conv_sample()
    with sample.program.to_runtime(simulator("tiny", exact)) as runtime:
        assert isinstance(runtime, rasna.RuntimeCSim)
        assert runtime.program is sample.program and runtime.target == "tiny"
        runtime.selfcheck()
        pairs = [expected(sample, seed) for seed in range(20)]
        x, y = (np.stack(side) for side in zip(*pairs, strict=True))
        assert (runtime(x, normalize=False) == y).all()
        scale = 2.0 ** -sample.program.outputs[0].type.frac
        assert (runtime(x / 16) == y * scale).all()
        assert runtime.counters == []
        assert runtime.kind == ("functional-exact" if exact else "functional")
        assert repr(runtime).startswith(f"<rasna.RuntimeCSim {runtime.kind} tiny ")
    assert repr(runtime).endswith(", closed>")


def test_a_then_b_then_a_again(simulator):
    path = simulator()
    a, b = conv_sample(1), conv_sample(2)
    runtime_a, runtime_b = a.program.to_runtime(path), b.program.to_runtime(path)
    x, y_a = expected(a, 3)
    first, other, third = (r(x, normalize=False) for r in (runtime_a, runtime_b, runtime_a))
    assert (first == y_a).all() and (third == first).all() and (other != first).any()


def test_eight_threads_share_a_runtime(simulator):
    sample = conv_sample()
    runtime = sample.program.to_runtime(simulator())
    pairs = [expected(sample, seed) for seed in range(16)]

    def work(index: int) -> bool:
        x, y = pairs[index % 16]
        return all((runtime(x, normalize=False) == y).all() for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


def test_the_object_runs_without_the_gil(fake_object):
    runtime = byte_program().to_runtime(fake_object(FAKE_SLEEP_US=300000))
    x = np.zeros((1, 8, 1), np.int8)

    def ran_beside() -> bool:
        done = []
        thread = threading.Thread(target=lambda: done.append(runtime(x, normalize=False)))
        thread.start()
        time.sleep(0.05)  # this thread wakes up while the object is still busy
        result = not done
        thread.join()
        return result

    assert any(ran_beside() for _ in range(5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_use_the_runtime(simulator):
    sample = conv_sample()
    runtime = sample.program.to_runtime(simulator())
    x, y = expected(sample, 1)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            runtime(x, normalize=False)

    thread = threading.Thread(target=keep_busy)
    thread.start()  # a context is in use while the process forks
    try:
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                good = (runtime(x, normalize=False) == y).all()
                os._exit(0 if good else 1)
            children.append(child)
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    finally:
        stop.set()
        thread.join()
    assert (runtime(x, normalize=False) == y).all()


def test_a_pickled_runtime_loads_the_object_anew(simulator):
    sample = conv_sample()
    runtime = pickle.loads(pickle.dumps(sample.program.to_runtime(simulator())))
    x, y = expected(sample, 1)
    assert (runtime(x, normalize=False) == y).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
def test_an_interrupt_leaves_the_runtime_usable(fake_object):
    runtime = byte_program().to_runtime(fake_object(FAKE_SLEEP_US=5000))
    x = np.zeros((5000, 1, 8, 1), np.int8)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        runtime(x, normalize=False)
    timer.join()
    assert time.perf_counter() - start < 5  # the whole batch takes 25 s
    assert (runtime(x[:3], normalize=False) == 0).all()


def test_an_object_rebuilt_at_the_same_path_is_a_new_one(fake_object):
    x = np.zeros((1, 8, 1), np.int8)
    program = byte_program()
    first = program.to_runtime(fake_object(FAKE_ADD=1))
    second = program.to_runtime(fake_object(FAKE_ADD=2))
    results = [r(x, normalize=False).ravel()[0] for r in (first, second, first)]
    assert results == [1, 2, 1]


def test_equal_objects_are_loaded_once_and_leave_no_files(fake_object, tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(library.tempfile, "tempdir", str(folder))
    path = fake_object(FAKE_ADD=77)
    shutil.copy(path, tmp_path / "copy.so")
    one, two = (library.open_library(p) for p in (path, str(tmp_path / "copy.so")))
    assert one.handle is two.handle and two.path.endswith("copy.so")
    assert os.listdir(folder) == []


def test_counters_are_those_of_the_last_run(fake_object):
    runtime = byte_program().to_runtime(fake_object(FAKE_COUNTERS=3))
    assert runtime.counters == []
    runtime(np.zeros((1, 8, 1)))
    assert runtime.counters == [100, 101, 102]


def test_close_frees_and_may_be_called_twice(fake_object):
    runtime = byte_program().to_runtime(fake_object())
    runtime(np.zeros((1, 8, 1)))
    runtime.close()
    runtime.close()
    with refuses(ClosedError, "this runtime is closed; make a new one with program.to_runtime"):
        runtime(np.zeros((1, 8, 1)))


def test_contexts_are_destroyed_with_their_runtime(fake_object, monkeypatch):
    destroyed = []
    original = library.Context.destroy
    monkeypatch.setattr(
        library.Context, "destroy",
        lambda self: (destroyed.append(self._pointer is not None), original(self)),
    )
    byte_program().to_runtime(fake_object())
    gc.collect()
    assert destroyed.count(True) == 1


def test_another_target_is_refused_with_both_named(fake_object):
    other = TARGETS["pynq-z2"].config_hash
    path = fake_object(FAKE_TARGET='"pynq-z2"', FAKE_HASH=f'"{other}"')
    with pytest.raises(TargetMismatchError) as caught:
        conv_sample().program.to_runtime(path)
    assert str(caught.value) == (
        f"the Program is for target tiny (configuration {TINY}), {path} is pynq-z2 "
        f'(configuration {other}); compile with target="pynq-z2", or run it on the object of tiny'
    )


def test_another_configuration_of_the_same_target_is_refused(fake_object):
    path = fake_object(FAKE_HASH='"0123456789abcdef"')
    with refuses(
        TargetMismatchError,
        f"the Program is for target tiny (configuration {TINY}), {path} is tiny (configuration "
        '0123456789abcdef); compile with target="tiny", or run it on the object of tiny',
    ):
        byte_program().to_runtime(path)


def test_another_isa_version_is_refused(fake_object):
    path = fake_object(FAKE_ISA=7)
    with pytest.raises(TargetMismatchError) as caught:
        byte_program().to_runtime(path)
    assert str(caught.value) == (
        f"the Program has ISA version 2, {path} has 7; compile the model again or build the "
        "object again"
    )


def test_another_interface_version_is_refused(fake_object):
    path = fake_object(FAKE_ABI=9)
    with pytest.raises(RuntimeObjectError) as caught:
        byte_program().to_runtime(path)
    assert str(caught.value) == (
        f"{path}: has version 9 of the runtime interface, this rasna needs 1; build the object "
        "again with the sources of this version"
    )


def test_an_incomplete_object_is_refused(fake_object):
    path = fake_object(FAKE_INCOMPLETE=1)
    with refuses(
        RuntimeObjectError, f"{path}: the function rasna_read_map is missing; build it again"
    ):
        byte_program().to_runtime(path)


def test_failures_of_the_object_carry_its_text(fake_object):
    path = fake_object(FAKE_RUN_ERROR=13)
    runtime = byte_program().to_runtime(path)
    with pytest.raises(RuntimeObjectError) as caught:
        runtime(np.zeros((1, 8, 1)))
    assert str(caught.value) == f"{path}: running the program failed with error 13: it broke"
    path = fake_object("other.so", FAKE_CREATE_ERROR=1)
    with refuses(RuntimeObjectError, f"{path}: cannot make a context: no room"):
        byte_program().to_runtime(path)


def test_a_broken_program_is_refused_when_the_runtime_is_made(simulator):
    program = conv_sample().program
    program.words[8] = 99
    path = simulator()
    with refuses(
        RuntimeObjectError,
        f"{path}: loading the program failed with error 1: instruction 1 (?): opcode is 99, "
        "allowed are 0 to 7 (unknown opcode)",
    ):
        program.to_runtime(path)


def test_files_that_are_no_objects_say_why(tmp_path):
    text = tmp_path / "text.so"
    text.write_text("not a library")
    missing = tmp_path / "missing.so"
    folder = tmp_path / "folder.so"
    folder.mkdir()
    empty = tmp_path / "empty.so"
    empty.touch()
    cannot = "cannot be loaded as a shared library on this machine"
    for path, message in (
        (missing, "there is no such file; make sim-so builds the simulator of a target"),
        (folder, "is not a file; a runtime object is a shared library"),
        (text, f"{cannot}: text.so: file too short"),
        (empty, f"{cannot}: empty.so: file too short"),
    ):
        with refuses(RuntimeObjectError, f"{path}: {message}"):
            byte_program().to_runtime(path)


def test_a_library_that_is_too_large_or_cannot_be_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "large.so"
    with open(path, "wb") as file:
        file.truncate(library._MAX_LIBRARY_BYTES + 1)  # takes no room on the disk
    with refuses(RuntimeObjectError, f"{path}: is too large to be a runtime object"):
        byte_program().to_runtime(path)

    def denied(*_):
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(library.os.path, "getsize", denied)
    with refuses(RuntimeObjectError, f"{path}: cannot be read: Permission denied"):
        byte_program().to_runtime(path)


def test_a_functional_object_has_no_profile(simulator):
    path = simulator()
    with byte_program().to_runtime(path) as runtime:
        with refuses(
            RuntimeObjectError,
            f"{path}: profile needs an object that counts cycles, this one is functional; build "
            "build/rasna-tiny-rtl.so with: make sim-rtl-so TARGET=tiny",
        ):
            runtime.profile(np.zeros((1, 8, 1)))


def test_a_foreign_library_is_refused(tmp_path):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    path = tmp_path / "foreign.so"
    subprocess.run(
        [compiler, "-shared", "-x", "c", "-o", str(path), "-"], input=b"int x;", check=True
    )
    with pytest.raises(RuntimeObjectError) as caught:
        byte_program().to_runtime(path)
    assert str(caught.value) == (
        f"{path}: is a shared library, but not a Rasna runtime object (it has no "
        "rasna_identify); make sim-so builds one"
    )


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "layer, words, first",
    [(0, 6, "conv1 differs first: byte 481 of slice 0 is 80, must be 104"),
     (1, 4, "conv2 differs first: byte 641 of slice 0 is 127, must be 96")],
)  # fmt: skip
def test_selfcheck_names_the_first_layer_that_differs(simulator, layer, words, first, exact):
    """The object runs instructions with one flipped bit in the bias of a layer."""
    sample, broken = conv_sample(), conv_sample()
    program = broken.program
    taps = first_record(program, (3, 5)[layer])
    program.words[taps] ^= np.uint64(1 << 11)  # a bit of the bias of channel 0
    runtime = program.to_runtime(simulator("tiny", exact))
    runtime._program = sample.program
    with refuses(
        SelfCheckError,
        f"{runtime!r} differs from the expected output in {words} of 8 words, first in output y2, "
        f"word 0; layer {first}",
    ):
        runtime.selfcheck()


def first_record(program: Program, number: int) -> int:
    """Address of the first channel record of instruction ``number``."""
    opcode, fields = isa.decode(program.words[8 * number : 8 * number + 8])
    assert opcode is isa.Opcode.TAPS
    return fields["stream_addr"]


def test_selfcheck_of_an_object_that_cannot_show_its_memory(fake_object):
    path = fake_object()
    runtime = conv_sample().program.to_runtime(path)
    with refuses(
        SelfCheckError,
        f"<rasna.RuntimeCSim rtl tiny {path}> differs from the expected output in 8 of 8 words, "
        f"first in output y2, word 0; which layer differs first is not known: {path}: setting the "
        "option stop_at failed with error 10: it broke",
    ):
        runtime.selfcheck()


def test_the_declarations_are_those_of_the_header():
    header = (ROOT / "sim" / "rasna_sim.h").read_text()
    found = dict(re.findall(r"RASNA_API[^;(]*?(rasna_\w+)\(([^)]*)\);", header))
    assert set(found) == set(library._FUNCTIONS)
    for name, arguments in found.items():
        count = 0 if arguments.strip() == "void" else arguments.count(",") + 1
        assert count == len(library._FUNCTIONS[name][1]), name
    version = re.search(r"#define RASNA_ABI_VERSION (\d+)", header)
    assert int(version.group(1)) == library.ABI_VERSION
    body = re.search(r"typedef struct rasna_identity \{(.*?)\} rasna_identity;", header, re.S)
    members = re.findall(r"(\w+);", body.group(1))
    assert members == [name for name, _ in library._Identity._fields_]


def test_a_runtime_is_made_in_100_ms(simulator, tmp_path):
    path = tmp_path / "m.rasna"
    conv_sample().program.save(path)
    simulator_path = simulator()
    rasna.load(path).to_runtime(simulator_path).close()
    start = time.process_time()  # processor time: a busy machine does not matter
    rasna.load(path).to_runtime(simulator_path).close()
    assert time.process_time() - start < 0.1
