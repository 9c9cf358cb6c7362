"""The .rasna file: nothing that is wrong with it goes unnoticed."""

import hashlib
import io
import json
import os
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rasna
from rasna.errors import RasnaFileError
from rasna.graph import HostStep
from rasna.program import container
from rasna.program.container import program_bytes, program_from_bytes
from rasna.program.manifest import MAX_SEGMENT_WORDS
from tests.messages import refuses
from tests.program.samples import S8, U8, conv_sample, identity_program

SEED = int(os.environ.get("RASNA_SEED", "0"))
AGAIN = "copy it again or compile the model again"


@pytest.fixture(scope="module")
def data() -> bytes:
    return program_bytes(conv_sample().program)


def seal(body_of: bytes) -> bytes:
    """A correct checksum for bytes that were changed on purpose."""
    body = body_of[: -container._SEAL_BYTES]
    return body + container._SEAL + hashlib.sha256(body).hexdigest().encode()


def rebuilt(data: bytes, change=None, parts=None, compression=zipfile.ZIP_STORED) -> bytes:
    """The archive with a changed manifest and parts, checksums of the whole correct."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(content["manifest.json"])
    if change:
        change(manifest)
    content["manifest.json"] = json.dumps(manifest).encode()
    content.update(parts or {})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, value in content.items():
            archive.writestr(name, value)
        archive.comment = bytes(container._SEAL_BYTES)
    return seal(buffer.getvalue())


def refusal(data: bytes) -> str:
    with pytest.raises(RasnaFileError) as caught:
        program_from_bytes(data, "m.rasna")
    return str(caught.value)


def test_load_gives_back_everything(tmp_path):
    program = conv_sample().program
    program.save(tmp_path / "m.rasna")
    loaded = rasna.load(tmp_path / "m.rasna")
    assert str(loaded) == str(program) and repr(loaded) == repr(program)
    assert (loaded.words == program.words).all() and loaded.words.dtype == np.uint64
    assert (loaded.selfcheck_expected == program.selfcheck_expected).all()
    assert loaded.inputs == program.inputs and loaded.outputs == program.outputs
    for name in ("selfcheck_seed", "structure", "channel_last", "scratch_words", "config_hash"):
        assert getattr(loaded, name) == getattr(program, name)
    assert [layer["checksum"] for layer in loaded.layers] == [
        layer["checksum"] for layer in program.layers
    ]


def test_the_same_program_gives_the_same_bytes(data, tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.'); from tests.program.samples import conv_sample; "
        f"conv_sample().program.save({str(tmp_path / 'm.rasna')!r})"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "m.rasna").read_bytes() == data
    assert program_bytes(program_from_bytes(data)) == data


@pytest.mark.parametrize("name", ["with space.rasna", "モデル é.rasna", "no_suffix", ".rasna"])
def test_any_file_name_works(name, tmp_path):
    conv_sample().program.save(str(tmp_path / name))
    assert rasna.load(str(tmp_path / name)).target == "tiny"
    assert os.listdir(tmp_path) == [name]


def test_nested_outputs_and_key_types_survive(tmp_path):
    structure = {"dict": {"z": {"tuple": [1, 0]}, 5: {"list": [1]}, "a": {"tuple": []}}}
    program = identity_program([("u", (2, 3, 5), U8), ("v", (4,), S8)], structure)
    loaded = program_from_bytes(program_bytes(program))
    assert loaded.structure == structure
    assert list(loaded.structure["dict"]) == ["z", 5, "a"]


def test_a_flip_of_any_byte_is_noticed(data):
    for index in range(len(data)):
        flipped = bytearray(data)
        flipped[index] ^= 1 << index % 8
        with pytest.raises(RasnaFileError):
            program_from_bytes(bytes(flipped))


@pytest.mark.parametrize("index", [0, 40, 1000, -100])
def test_a_flip_is_called_damage(data, index):
    flipped = bytearray(data)
    flipped[index] ^= 4
    assert refusal(bytes(flipped)) == (
        f"m.rasna: the file is damaged (its checksum differs); {AGAIN}"
    )


def test_truncation_is_noticed_at_every_length(data):
    for length in [*range(0, len(data), 37), len(data) - 1]:
        message = refusal(data[:length])
        if length > 1:
            assert message == f"m.rasna: the file is truncated or damaged; {AGAIN}"
    assert refusal(b"") == f"m.rasna: the file is empty; {AGAIN}"


def test_appended_bytes_are_noticed(data):
    assert refusal(data + b"\0") == f"m.rasna: the file is truncated or damaged; {AGAIN}"


@pytest.mark.parametrize("index", range(200))
def test_hostile_archives_with_a_correct_seal_never_crash(data, index):
    """Bytes are changed, removed and added, and the checksum of the whole is made to fit."""
    seed = SEED + index
    print(f"repeat: RASNA_SEED={seed} pytest {__file__} -k hostile_archives")
    rng = random.Random(seed)
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(changed) - container._SEAL_BYTES)
        kind = rng.randrange(4)
        if kind <= 1:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del changed[at : at + rng.randrange(1, 40)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 20))
    try:
        program = program_from_bytes(seal(bytes(changed)))
    except RasnaFileError:
        return
    assert str(program) and program.words.size > 0  # what changed does not matter: time stamps


def test_swapped_parts_are_noticed(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        program, expected = archive.read("program.bin"), archive.read("expected.bin")
    swapped = rebuilt(data, parts={"program.bin": expected, "expected.bin": program})
    assert refusal(swapped) == "m.rasna: part expected.bin is damaged (its checksum differs)"


def test_foreign_files_are_not_rasna_files(tmp_path):
    assert refusal(b"%PDF-1.7 something") == (
        "m.rasna: is not a .rasna file; Program.save writes one"
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("manifest.json", "{}")
    assert refusal(buffer.getvalue()) == (
        "m.rasna: is a zip archive, but not one that Program.save wrote; a .rasna file must not "
        "be repacked"
    )


def test_another_format_version_is_named(data):
    def newer(manifest):
        manifest["format_version"] = 3

    assert refusal(rebuilt(data, newer)) == (
        "m.rasna: has format version 3, this rasna reads version 2; compile the model again, or "
        "install the rasna that wrote it"
    )


def test_compressed_parts_are_refused(data):
    """So no part can be larger than the file."""
    bomb = rebuilt(data, parts={"program.bin": bytes(1 << 20)}, compression=zipfile.ZIP_DEFLATED)
    assert refusal(bomb) == "m.rasna: part manifest.json is compressed; .rasna files are not"


def test_a_part_that_claims_a_terabyte_is_refused(data):
    """The sizes in the archive's directory are lies; the seal is correct."""
    name = data.rindex(b"program.bin")  # in the central directory, 46 bytes after its start
    lied = bytearray(data)
    for at in (name - 26, name - 22):
        lied[at : at + 4] = (0xFFFFFF00).to_bytes(4, "little")
    assert refusal(seal(bytes(lied))) == (
        "m.rasna: part program.bin claims 4,294,967,040 bytes, at most "
        f"{len(data):,} are possible"
    )


def test_a_part_that_is_there_twice_is_refused(data):
    buffer = io.BytesIO()
    with pytest.warns(UserWarning), zipfile.ZipFile(buffer, "w") as archive:
        for _ in range(2):
            archive.writestr("manifest.json", "{}")
        archive.comment = bytes(container._SEAL_BYTES)
    assert refusal(seal(buffer.getvalue())) == (
        "m.rasna: holds 2 parts named manifest.json, 1 is needed"
    )


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(manifest):
        node = manifest
        for key in path:
            node = node[key]
        node[last] = value

    return change


WRONG_MANIFESTS = {
    "segment": (_set("scratch_words", 1 << 40), "manifest: scratch_words must be an integer from "
                f"0 to {MAX_SEGMENT_WORDS}, is 1099511627776"),
    "terabyte_port": (_set("inputs", 0, "shape", [1 << 40]), "manifest: inputs[0]: shape must be "
                      "a list of 1 to 8 positive integers, is [1099511627776]"),
    "port_sum": (_set("input_words", 9), "manifest: input_words must be 8, the words of all "
                 "inputs, is 9"),
    "overlap": (_set("inputs", 0, "word_offset", 1), "manifest: inputs[0]: word_offset must be an "
                "integer from 0 to 0, is 1"),
    "shape": (_set("inputs", 0, "shape", [2, 4, 9]), "manifest: inputs[0]: tensor_shape must be "
              "three sizes with as many elements as [2, 4, 9], is [2, 4, 8]"),
    "dtype": (_set("inputs", 0, "dtype", "float64"), "manifest: inputs[0]: dtype must be int8 as "
              "its type says, is 'float64'"),
    "bits": (_set("outputs", 0, "type", "bits", 64), "manifest: outputs[0].type: bits must be an "
             "integer from 2 to 8, is 64"),
    "boolean_as_number": (_set("selfcheck_seed", True), "manifest: selfcheck_seed must be an "
                          "integer from 0 to 9223372036854775807, is True"),
    "structure": (_set("structure", {"tuple": [0, 1]}), "manifest: structure must be tuples, "
                  "lists, dicts and records of numbers below 1 and of null, is "
                  "{'tuple': [0, 1]}"),
    "record": (_set("structure", {"namedtuple": ["P", [["a", 0], ["a", 0]]]}), "manifest: "
               "structure must be tuples, lists, dicts and records of numbers below 1 and of "
               "null, is {'namedtuple': ['P', [['a', 0], ['a', 0]]]}"),
    "record field": (_set("structure", {"dataclass": ["P", [["__class__", 0]]]}), "manifest: "
                     "structure must be tuples, lists, dicts and records of numbers below 1 and of "
                     "null, is {'dataclass': ['P', [['__class__', 0]]]}"),
    "record name": (_set("structure", {"dataclass": ["a b", []]}), "manifest: structure must be "
                    "tuples, lists, dicts and records of numbers below 1 and of null, is "
                    "{'dataclass': ['a b', []]}"),
    "null alone": (_set("structure", None), "manifest: structure must be tuples, lists, dicts and "
                   "records of numbers below 1 and of null, is None"),
    "hash": (_set("config_hash", "xyz"), "manifest: config_hash must be 16 hexadecimal digits, "
             "is 'xyz'"),
    "no_inputs": (_set("inputs", []), "manifest: inputs must be a list that is not empty, is []"),
    "layer": (_set("layers", 0, "cycles", -1), "manifest: layers[0]: cycles must be an integer "
              "from 0 to 9223372036854775807, is -1"),
    "layer_entry": (_set("layers", 0, "colour", 1), "manifest: layers[0] has an unknown entry "
                    "'colour'"),
    "layers": (_set("layers", 3), "manifest: layers must be a list of at most 100000 entries, "
               "is 3"),
    "part": (_set("parts", {}), "the manifest must list the part program.bin"),
    "part_size": (_set("parts", "program.bin", "bytes", 8), "part program.bin has 912 bytes, the "
                  "manifest says 8; whole words of 8 bytes are needed"),
    "port": (_set("inputs", [3]), "manifest: inputs[0] must be a table of names and "
             "values"),
    "result": (_set("results", ["y9"]), "manifest: results must be names of outputs and host "
               "steps, is ['y9']"),
    "foreign": (_set("format", "other"), "the manifest is not that of a .rasna file"),
}


@pytest.mark.parametrize("name", WRONG_MANIFESTS)
def test_every_value_of_the_manifest_is_checked(data, name):
    change, message = WRONG_MANIFESTS[name]
    assert refusal(rebuilt(data, change)) == f"m.rasna: {message}"


def step(**values) -> dict:
    """A host step that reads the output y2, of 2 x 4 x 8 numbers."""
    known = {
        "name": "head", "kind": "softmax", "source": "y2", "shape": [2, 4, 8], "dtype": "float32",
        "channels": True, "attributes": {"axis": 1},
    }  # fmt: skip
    return {**known, **values}


WRONG_STEPS = {
    "no table": ([3], "host_steps[0] must be a table of names and values"),
    "name twice": ([step(), step()], "host_steps[1]: name must be a name that no output and no "
                   "other step has, is 'head'"),
    "name of an output": ([step(name="y2")], "host_steps[0]: name must be a name that no "
                          "output and no other step has, is 'y2'"),
    "kind": ([step(kind="eval")], "host_steps[0]: kind must be one of softmax, log_softmax, "
             "argmax, argmin, sigmoid, logsigmoid, softplus, tanh, exp, log, sqrt, abs, normalize, "
             "scale, reshape, take, is 'eval'"),
    "source": ([step(source="head")], "host_steps[0]: source must be the name of an output or of a "
               "step before, is 'head'"),
    "axis": ([step(attributes={"axis": 0})], "host_steps[0]: attributes must be those of softmax "
             "for the shape [2, 4, 8], is {'axis': 0}"),
    "axis too large": ([step(attributes={"axis": 4})], "host_steps[0]: attributes must be those of "
                       "softmax for the shape [2, 4, 8], is {'axis': 4}"),
    "attribute too many": ([step(attributes={"axis": 1, "out": 1})], "host_steps[0]: attributes "
                           "must be those of softmax for the shape [2, 4, 8], is {'axis': 1, "
                           "'out': 1}"),
    "infinite": ([step(kind="scale", attributes={"factor": 1e999, "offset": 0.0})], None),
    "channel": ([step(kind="take", attributes={"channels": [2]})], "host_steps[0]: attributes "
                "must be those of take for the shape [2, 4, 8], is {'channels': [2]}"),
    "size": ([step(kind="reshape", attributes={"shape": [63]})], "host_steps[0]: attributes must "
             "be those of reshape for the shape [2, 4, 8], is {'shape': [63]}"),
    "shape": ([step(shape=[64])], "host_steps[0]: shape must be [2, 4, 8], which softmax gives, is "
              "[64]"),
    "dtype": ([step(dtype="int64")], "host_steps[0]: dtype must be float32, is 'int64'"),
    "dtype of an index": (
        [step(kind="argmax", shape=[4, 8], attributes={"axis": 1, "keepdim": False})],
        "host_steps[0]: dtype must be int64, is 'float32'",
    ),
    "channels": ([step(channels=1)], "host_steps[0]: channels must be true or false, is 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_STEPS)
def test_every_value_of_a_host_step_is_checked(data, name):
    steps, message = WRONG_STEPS[name]
    found = refusal(rebuilt(data, _set("host_steps", steps)))
    if message is None:  # JSON has no infinity
        assert found.startswith("m.rasna: manifest: host_steps[0]: attributes must be those of")
    else:
        assert found == f"m.rasna: manifest: {message}"


def test_a_right_host_step_is_read(data):
    def change(manifest):
        manifest["host_steps"], manifest["results"] = [step()], ["head"]

    program = program_from_bytes(rebuilt(data, change))
    assert program.results == ["head"]
    assert program.host_steps == [
        HostStep("head", "softmax", "y2", (2, 4, 8), "float32", True, {"axis": 1})
    ]


WORDS = f"an integer from 0 to {MAX_SEGMENT_WORDS}"
NEEDED = {
    "channel_last": "true or false",
    "compiler_version": "a text",
    "config_hash": "a text",
    "host_steps": "a list of at most 1000 entries",
    "input_words": WORDS,
    "inputs": "a list of at most 4096 entries",
    "isa_version": f"an integer from 0 to {2**31}",
    "layers": "a list of at most 100000 entries",
    "output_words": WORDS,
    "results": "a list of at most 1000 entries",
    "outputs": "a list of at most 4096 entries",
    "scratch_words": WORDS,
    "selfcheck_seed": f"an integer from 0 to {2**63 - 1}",
    "structure": "tuples, lists, dicts and records of numbers below 1 and of null",
    "target": "a text",
}


def test_every_missing_value_is_named(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = list(json.loads(archive.read("manifest.json")))
    optional = {"parts", "format", "format_version"}
    assert sorted(set(names) - optional) == sorted(NEEDED)
    for name, needed in NEEDED.items():
        message = refusal(rebuilt(data, lambda manifest, name=name: manifest.pop(name)))
        assert message == f"m.rasna: manifest: {name} must be {needed}, it is missing"


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100000], ids=["cut", "bytes", "deep"])
def test_a_manifest_that_is_no_json_is_refused_with_pythons_own_words(data, text):
    with pytest.raises((ValueError, RecursionError)) as own:
        json.loads(text.decode("utf-8"))
    found = refusal(rebuilt(data, parts={"manifest.json": text}))
    assert found == f"m.rasna: the manifest is not JSON: {own.value}"


def test_a_manifest_that_is_not_a_table_is_refused(data):
    found = refusal(rebuilt(data, parts={"manifest.json": b"[1]"}))
    assert found == "m.rasna: the manifest is not a table of names and values"


def test_paths_that_cannot_be_read_say_why(tmp_path):
    for path, message in (
        (tmp_path / "none.rasna", "there is no such file"),
        (tmp_path, "is a directory; give the name of a .rasna file"),
    ):
        with pytest.raises(RasnaFileError) as caught:
            rasna.load(path)
        assert str(caught.value) == f"{path}: {message}"
    with refuses(RasnaFileError, "'a\\x00b': is not a file name: embedded null byte"):
        rasna.load("a\0b")
    with refuses(RasnaFileError, "load needs the path of a .rasna file, not int"):
        rasna.load(7)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "m.rasna"
    with open(path, "wb") as file:
        file.truncate(container.MAX_FILE_BYTES + 1)  # takes no room on the disk
    most = container.MAX_FILE_BYTES
    with refuses(
        RasnaFileError, f"{path}: has {most + 1:,} bytes; a .rasna file has at most {most:,}"
    ):
        rasna.load(path)


def test_paths_that_cannot_be_written_say_why(tmp_path):
    program = conv_sample().program
    missing = tmp_path / "none" / "m.rasna"
    for path, message in (
        (tmp_path, "is a directory; give the name of a file in it"),
        (missing, f"the directory {missing.parent} does not exist; create it first"),
    ):
        with pytest.raises(RasnaFileError) as caught:
            program.save(path)
        assert str(caught.value) == f"{path}: {message}"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_no_permission_is_an_error(tmp_path):
    program = conv_sample().program
    path = tmp_path / "m.rasna"
    tmp_path.chmod(0o500)
    with refuses(RasnaFileError, f"{path}: cannot be written: Permission denied"):
        program.save(path)


def test_a_read_only_file_is_not_overwritten(tmp_path, monkeypatch):
    path = tmp_path / "m.rasna"
    conv_sample().program.save(path)
    monkeypatch.setattr(container.os, "access", lambda *_: False)
    with refuses(RasnaFileError, f"{path}: the file may not be overwritten (it is read-only)"):
        conv_sample(1).program.save(path)


def test_permissions_are_those_of_open_or_of_the_old_file(tmp_path):
    path, plain = tmp_path / "m.rasna", tmp_path / "plain"
    plain.touch()
    conv_sample().program.save(path)
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    conv_sample(1).program.save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_saving_over_the_loaded_file_works(tmp_path):
    path = tmp_path / "m.rasna"
    conv_sample(1).program.save(path)
    loaded = rasna.load(path)
    words = loaded.words.copy()
    conv_sample(2).program.save(path)
    assert (loaded.words == words).all()
    assert (rasna.load(path).words == conv_sample(2).program.words).all()


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.rasna"
    conv_sample().program.save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container.os, "replace", full_disk)
    with refuses(RasnaFileError, f"{path}: cannot be written: No space left on device"):
        conv_sample(1).program.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.rasna"]
