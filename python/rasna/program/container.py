"""The ``.rasna`` file: reading and writing.

A zip archive without compression and with fixed time stamps: ``manifest.json`` and raw
little-endian arrays ``program.bin`` and ``expected.bin``, with a SHA-256 of each in the manifest.
The archive's comment is the SHA-256 of all bytes before it, so that no byte of the file, the
archive's own structures included, can change without notice. A file is checked as a whole before
anything in it is used; nothing is ever unpickled, and nothing is read beyond the file's own length.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RasnaFileError
from .manifest import FORMAT_VERSION, program_from_manifest, program_to_manifest
from .program import Program

__all__ = ["FORMAT_VERSION", "load", "program_bytes", "program_from_bytes", "save"]

MAX_FILE_BYTES = 1 << 31
MAX_MANIFEST_BYTES = 1 << 24
_MANIFEST = "manifest.json"
_PARTS = ("program.bin", "expected.bin")
_SEAL = b"rasna-sha256:"
_SEAL_BYTES = len(_SEAL) + 64
_EPOCH = (1980, 1, 1, 0, 0, 0)
_HEAD = bytes.fromhex("504b0304 1400 0000 0000 0000 2100")  # up to the time stamp of the epoch


def program_bytes(program: Program) -> bytes:
    """The bytes of the ``.rasna`` file of a Program."""
    arrays = [program.words]
    if program.selfcheck_expected is not None:
        arrays.append(program.selfcheck_expected)
    parts = {
        name: np.ascontiguousarray(array, "<u8").tobytes()
        for name, array in zip(_PARTS, arrays, strict=False)
    }
    manifest = program_to_manifest(program)
    manifest["parts"] = {
        name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in parts.items()
    }
    text = json.dumps(manifest, sort_keys=True, indent=1, allow_nan=False)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in {_MANIFEST: text.encode(), **parts}.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3  # the same bytes on every operating system
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
        archive.comment = bytes(_SEAL_BYTES)
    body = buffer.getvalue()[:-_SEAL_BYTES]
    return body + _SEAL + hashlib.sha256(body).hexdigest().encode()


def save(program: Program, path: str | os.PathLike[str]) -> None:
    """See :meth:`Program.save`."""
    target = Path(path)
    if target.is_dir():
        raise RasnaFileError(f"{target}: is a directory; give the name of a file in it")
    if not target.parent.is_dir():
        raise RasnaFileError(
            f"{target}: the directory {target.parent} does not exist; create it first"
        )
    if target.exists() and not os.access(target, os.W_OK):
        raise RasnaFileError(f"{target}: the file may not be overwritten (it is read-only)")
    data = program_bytes(program)
    temporary = target.parent / f".{target.name[:64]}.{secrets.token_hex(6)}"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode & 0o777)
        os.replace(temporary, target)
    except OSError as error:
        raise RasnaFileError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)  # gone already when all went well


def load(path: str | os.PathLike[str]) -> Program:
    """Read a ``.rasna`` file.

    Raises
    ------
    RasnaFileError that says what is wrong with the file and what to do.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise RasnaFileError(f"load needs the path of a .rasna file, not {type(path).__name__}")
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            # a count that fits 32-bit Python as well
            data = file.read(size_bytes + 1) if size_bytes <= MAX_FILE_BYTES else b""
    except OSError as error:
        raise RasnaFileError(f"{source}: {_open_problem(error)}") from error
    except ValueError as error:  # a zero byte in the name
        raise RasnaFileError(f"{source!r}: is not a file name: {error}") from error
    if size_bytes > MAX_FILE_BYTES:
        raise RasnaFileError(
            f"{source}: has {size_bytes:,} bytes; a .rasna file has at most {MAX_FILE_BYTES:,}"
        )
    return program_from_bytes(data, source)


def _open_problem(error: OSError) -> str:
    return {
        errno.ENOENT: "there is no such file",
        errno.EISDIR: "is a directory; give the name of a .rasna file",
        errno.EACCES: "may not be read; check its permissions",
    }.get(error.errno or 0, f"cannot be read: {error.strerror}")


def program_from_bytes(data: bytes, source: str = "the program") -> Program:
    """Check the bytes of a ``.rasna`` file and make a Program; ``source`` is for messages."""
    _check_seal(data, source)
    manifest, arrays = _read_archive(data, source)
    return program_from_manifest(manifest, arrays, source)


def _check_seal(data: bytes, source: str) -> None:
    again = "copy it again or compile the model again"
    if not data:
        raise RasnaFileError(f"{source}: the file is empty; {again}")
    body, seal = data[:-_SEAL_BYTES], data[-_SEAL_BYTES:]
    if seal.startswith(_SEAL):
        if seal[len(_SEAL) :] != hashlib.sha256(body).hexdigest().encode():
            raise RasnaFileError(f"{source}: the file is damaged (its checksum differs); {again}")
        return
    if not data.startswith(b"PK"):
        raise RasnaFileError(f"{source}: is not a .rasna file; Program.save writes one")
    if not data.startswith(_HEAD) and zipfile.is_zipfile(io.BytesIO(data)):
        raise RasnaFileError(
            f"{source}: is a zip archive, but not one that Program.save wrote; "
            "a .rasna file must not be repacked"
        )
    raise RasnaFileError(f"{source}: the file is truncated or damaged; {again}")


def _read_archive(data: bytes, source: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The manifest and the arrays, each checked against its checksum."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            text = _read_part(archive, _MANIFEST, MAX_MANIFEST_BYTES, len(data), source)
            manifest = json.loads(text.decode())
            if not isinstance(manifest, dict):
                raise RasnaFileError(f"{source}: the manifest is not a table of names and values")
            _check_version(manifest, source)
            arrays = _read_arrays(archive, manifest, len(data), source)
    except RasnaFileError:
        raise
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise RasnaFileError(f"{source}: the manifest is not JSON: {error}") from error
    except Exception as error:  # a hostile archive makes zipfile raise errors of many kinds
        raise RasnaFileError(f"{source}: the archive is malformed: {error}") from error
    return manifest, arrays


def _check_version(manifest: dict[str, Any], source: str) -> None:
    if manifest.get("format") != "rasna":
        raise RasnaFileError(f"{source}: the manifest is not that of a .rasna file")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise RasnaFileError(
            f"{source}: has format version {version!r}, this rasna reads version "
            f"{FORMAT_VERSION}; compile the model again, or install the rasna that wrote it"
        )


def _read_part(
    archive: zipfile.ZipFile, name: str, limit_bytes: int, file_bytes: int, source: str
) -> bytes:
    infos = [info for info in archive.infolist() if info.filename == name]
    if len(infos) != 1:
        raise RasnaFileError(f"{source}: holds {len(infos)} parts named {name}, 1 is needed")
    info = infos[0]
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise RasnaFileError(f"{source}: part {name} is compressed; .rasna files are not")
    if info.file_size > min(limit_bytes, file_bytes):
        raise RasnaFileError(
            f"{source}: part {name} claims {info.file_size:,} bytes, at most "
            f"{min(limit_bytes, file_bytes):,} are possible"
        )
    return archive.read(info)


def _read_arrays(archive, manifest: dict[str, Any], file_bytes: int, source: str):
    parts = manifest.get("parts")
    if not isinstance(parts, dict) or not set(parts) <= set(_PARTS) or _PARTS[0] not in parts:
        raise RasnaFileError(f"{source}: the manifest must list the part {_PARTS[0]}")
    arrays = {}
    for name, part in parts.items():
        data = _read_part(archive, name, MAX_FILE_BYTES, file_bytes, source)
        digest = hashlib.sha256(data).hexdigest()
        if not isinstance(part, dict) or part.get("sha256") != digest:
            raise RasnaFileError(f"{source}: part {name} is damaged (its checksum differs)")
        if part.get("bytes") != len(data) or len(data) % 8:
            raise RasnaFileError(
                f"{source}: part {name} has {len(data)} bytes, the manifest says "
                f"{part.get('bytes')!r}; whole words of 8 bytes are needed"
            )
        arrays[name] = np.frombuffer(data, "<u8").astype(np.uint64)
    return arrays
