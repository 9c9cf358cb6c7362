"""The C interface: identity, life of a context, arguments, options, batches."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
import sim_harness as harness
from build_objects import path_of
from sim_harness import Context, SimError
from small_programs import copy_program

from rasna import isa, targets

KINDS = ("fast", "exact")


@pytest.fixture(params=KINDS)
def library(request):
    return request.getfixturevalue(request.param)("tiny")


@pytest.mark.parametrize("target", sorted(targets.TARGETS))
@pytest.mark.parametrize("kind", KINDS)
def test_identity_names_versions_target_and_hash(target, kind, request):
    identity = request.getfixturevalue(kind)(target).rasna_identify().contents
    assert identity.abi_version == 1
    assert identity.isa_version == isa.ISA_VERSION
    assert identity.target.decode() == target
    assert identity.config_hash.decode() == targets.TARGETS[target].config_hash
    assert identity.kind == {"fast": b"functional", "exact": b"functional-exact"}[kind]
    assert re.fullmatch(r"(g|clang)\+\+ \d+ \w+ O3", identity.build.decode())


def test_only_the_interface_is_exported():
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    header = (harness.ROOT / "sim" / "rasna_sim.h").read_text()
    declared = set(re.findall(r"^RASNA_API .*?\**(rasna_\w+)\(", header, re.M))
    for options in ({}, {"exact": True}):
        listing = subprocess.run(
            ["nm", "-D", "--defined-only", str(path_of("tiny", **options))],
            capture_output=True, text=True, check=True,
        ).stdout
        exported = {line.split()[2] for line in listing.splitlines()}
        assert {name for name in exported if not name.startswith("_Z")} == declared
        assert not [name for name in exported if "rasna" in name and name.startswith("_Z")]


@pytest.mark.parametrize("compiler, standard", [("gcc", "c99"), ("g++", "c++11")])
def test_the_header_is_plain_c(compiler, standard, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / ("use.c" if compiler == "gcc" else "use.cpp")
    source.write_text('#include "rasna_sim.h"\n'
                      "int main(void) { return (int)sizeof(rasna_identity) * 0; }\n")
    subprocess.run(
        [compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror",
         f"-I{harness.ROOT / 'sim'}", str(source), "-o", str(tmp_path / "use")], check=True,
    )


def test_images_of_a_batch_follow_one_another(library):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**64, 12, np.uint64)
    with Context(library) as context:
        context.load(copy_program().words(), 4, 4)
        assert np.array_equal(context.run(x, batch=3), x)
        assert context.run(x[:0], batch=0).size == 0
        assert np.array_equal(context.run(x[4:8]), x[4:8])


def test_words_that_are_not_written_are_zero(library):
    with Context(library) as context:
        context.load(copy_program().words(), 4, 7)
        assert list(context.run(np.arange(1, 5))) == [1, 2, 3, 4, 0, 0, 0]


def test_a_program_can_be_replaced(library):
    with Context(library) as context:
        for num_words in (4, 2, 4):
            context.load(copy_program(num_words).words(), 4, num_words)
            assert list(context.run(np.arange(4))) == list(range(num_words))


def test_functional_objects_have_no_counters(library):
    with Context(library) as context:
        assert context.num_counters() == 0


def test_a_run_stops_where_it_is_told(library):
    with Context(library) as context:
        context.load(copy_program().words(), 4, 4)
        context.set_option("stop_at", 1)
        assert context.get_option("stop_at") == "1"
        assert not context.run(np.arange(1, 5)).any()
        assert list(context.read_map(0, 0, 4)) == [1, 2, 3, 4]
        context.set_option("stop_at", 0)
        context.run(np.arange(11, 15))
        assert list(context.read_map(0, 1, 2)) == [2, 3]
        context.set_option("stop_at", 100)
        assert list(context.run(np.arange(1, 5))) == [1, 2, 3, 4]
        context.set_option("stop_at", -1)
        assert list(context.run(np.arange(1, 5))) == [1, 2, 3, 4]


@pytest.mark.parametrize("arguments, text", [
    ((4, 0, 1), "slice is 4, allowed are 0 to 3"),
    ((0, 128, 1), "first_word is 128 and num_words is 1, the map memory has 128 words"),
    ((0, 2**32 - 1, 2),
     "first_word is 4294967295 and num_words is 2, the map memory has 128 words"),
])
def test_reads_outside_the_map_are_refused(library, arguments, text):
    with Context(library) as context:
        with pytest.raises(SimError) as error:
            context.read_map(*arguments)
    assert (error.value.code, error.value.text) == (isa.Error.MAP_RANGE, text)


def test_running_without_a_program_is_an_error(library):
    with Context(library) as context:
        with pytest.raises(SimError) as error:
            context.run(np.zeros(1))
        assert error.value.code == isa.Error.NO_PROGRAM
        assert error.value.text == "no program is loaded: call rasna_load first"
        context.load(copy_program().words(), 4, 4)
        with pytest.raises(SimError):
            context.load(copy_program().words()[:-8], 4, 4)
        with pytest.raises(SimError) as error:  # the program before it is gone, too
            context.run(np.zeros(4))
        assert error.value.code == isa.Error.NO_PROGRAM


def test_null_pointers_are_errors(library):
    words = copy_program().words()
    with Context(library) as context:
        context.load(words, 4, 4)
        x = np.zeros(4, np.uint64)
        pointer = x.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))
        for arguments, name in (((None, pointer), "inputs"), ((pointer, None), "outputs")):
            with pytest.raises(SimError) as error:
                context.check(library.rasna_run(context.handle, *arguments, 1))
            assert error.value.text == f"{name} is NULL, but 4 words are needed"
        with pytest.raises(SimError) as error:
            context.check(library.rasna_load(context.handle, None, 8, 0, 0, 0))
        assert error.value.text == "words is NULL, but 8 words are needed"
        context.load(words, 4, 4)
        odd = ctypes.cast(ctypes.c_void_p(x.ctypes.data + 1), ctypes.POINTER(ctypes.c_uint64))
        with pytest.raises(SimError) as error:
            context.check(library.rasna_run(context.handle, odd, pointer, 1))
        assert error.value.text == "inputs is not aligned to 8 bytes, as words must be"
        with pytest.raises(SimError) as error:
            context.check(library.rasna_counters(context.handle, None, 0, None))
        assert error.value.text == "count is NULL"
    assert library.rasna_error_code(None) == isa.Error.BAD_ARGUMENT
    assert library.rasna_error_text(None) == b"the context is NULL"
    assert library.rasna_run(None, None, None, 1) == isa.Error.BAD_ARGUMENT
    assert library.rasna_create(None, None, 0) == isa.Error.BAD_ARGUMENT
    library.rasna_destroy(None)


def test_sizes_beyond_memory_are_errors(library):
    with Context(library) as context:
        for scratch_words in (2**45, 2**61, 2**64 - 1):
            with pytest.raises(SimError) as error:
                context.load(copy_program().words(), 4, 4, scratch_words)
            assert (error.value.code, error.value.text) == (
                isa.Error.NO_MEMORY, "not enough memory",
            )
        context.load(copy_program().words(), 4, 4)
        assert list(context.run(np.arange(4))) == [0, 1, 2, 3]


def test_options_are_read_back_and_wrong_ones_refused(fast):
    with Context(fast("tiny")) as context:
        context.set_option("step_limit", 1000)
        assert context.get_option("step_limit") == "1000"
        context.set_option("cache_bytes", 0)
        assert context.get_option("cache_bytes") == "0"
        assert "plain" in context.get_option("bodies").split()
        for name, value, text in (
            ("step_limit", "0", 'option step_limit is "0", allowed is a number from 1 on'),
            ("step_limit", "9" * 30,
             f'option step_limit is "{"9" * 30}", allowed is a number from 1 on'),
            ("stop_at", "x", 'option stop_at is "x", allowed is a number from -1 on'),
            ("cache_bytes", "-1", 'option cache_bytes is "-1", allowed is a number from 0 on'),
            ("speed", "1", 'option "speed" is unknown; there are step_limit, stop_at, body, '
                           "bodies (read only), cache_bytes"),
        ):
            with pytest.raises(SimError) as error:
                context.set_option(name, value)
            assert (error.value.code, error.value.text) == (isa.Error.BAD_ARGUMENT, text)
        with pytest.raises(SimError) as error:
            context.get_option("speed")
        assert error.value.text.startswith('option "speed" is unknown')


def test_a_body_that_does_not_exist_is_refused_when_a_context_is_made():
    path = path_of("tiny")
    code = (
        "import sim_harness as harness\n"
        f"library = harness.open_library({str(path)!r})\n"
        "try:\n    print(harness.Context(library).get_option('body'))\n"
        "except harness.SimError as error:\n    print(error.code, error.text)\n"
    )
    good = harness.run_python(code, RASNA_BODY="plain")
    assert good.stdout == "plain\n", good.stderr
    bad = harness.run_python(code, RASNA_BODY="mmx")
    assert re.fullmatch(
        r'10 the loops "mmx" \(RASNA_BODY, option body\) do not run on this processor; '
        r"allowed are (\w+ )*plain\n",
        bad.stdout,
    ), bad
