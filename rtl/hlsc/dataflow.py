"""The top function: streams, ports and process calls, read from the optimised IR."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import HlsError
from .layout import split_commas
from .llparse import Module
from .pragmas import Pragma


@dataclass
class Call:
    """One process and what each of its arguments is connected to: a stream, a top argument, or a
    constant.
    """

    process: str
    actuals: list[str]
    location: object


@dataclass
class Stream:
    """A FIFO; its width and ends become known when the processes are compiled."""

    name: str
    depth: int = 2
    width: int = 0
    writer: str | None = None
    reader: str | None = None


@dataclass
class Top:
    """The dataflow function."""

    name: str
    args: list[tuple[str, str]]  # (name, LLVM type)
    calls: list[Call] = field(default_factory=list)
    streams: dict[str, Stream] = field(default_factory=dict)
    bundles: dict[str, str] = field(default_factory=dict)  # port argument -> AXI port name
    aliases: dict[str, str] = field(default_factory=dict)


def source_name(name: str) -> str:
    """An argument's name in the source: clang adds a suffix to a struct passed as a pointer."""
    return name.removesuffix(".coerce")


def read_top(module: Module, name: str, pragmas: list[Pragma]) -> Top:
    """Read the dataflow function; anything but streams and calls is an error."""
    arguments, body, _ = module.bodies[name]
    top = Top(name, [_argument(a.split()[-1][1:], a.split()[0]) for a in split_commas(arguments)])
    location = module.location_of(name)
    for line in body.split("\n"):
        debug = re.search(r", !dbg !(\d+)", line)
        location = module.metadata.location(int(debug.group(1))) if debug else location
        _line(top, re.sub(r"(, ![\w.]+ !\d+)+$", "", line.strip()), location)
    _interfaces(top, pragmas)
    return top


def _argument(name: str, kind: str) -> tuple[str, str]:
    """Beyond the sixth argument clang passes a port's pointer as an integer."""
    return source_name(name), "ptr" if name.endswith(".coerce") else kind


def _line(top: Top, text: str, location) -> None:
    if (
        not text
        or text.endswith(":")
        or text.startswith(";")
        or text == "ret void"
        or "@llvm.lifetime" in text
    ):
        return
    if match := re.match(r'%([\w.]+) = alloca %"?(?:struct|class)\.hls::stream', text):
        top.streams[match.group(1)] = Stream(match.group(1))
        return
    if match := re.match(
        r"call void @__hls_stream_depth\(ptr .*?%([\w.]+), i32 noundef (-?\d+)\)", text
    ):
        stream, depth = top.streams.get(match.group(1)), int(match.group(2))
        if stream is None or depth < 1:
            raise HlsError(
                location, f"stream depth {depth} of {match.group(1)}: it must be at least 1"
            )
        stream.depth = depth
        return
    if match := re.match(r"%([\w.]+) = inttoptr i64 %([\w.]+) to ptr", text):
        top.aliases[match.group(1)] = source_name(match.group(2))
        return
    if match := re.match(r"(?:tail )?call void @([\w.$]+)\((.*)\)", text):
        actuals = [a.split()[-1] for a in split_commas(match.group(2))]
        actuals = [source_name(a.lstrip("%")) for a in actuals]
        top.calls.append(Call(match.group(1), [top.aliases.get(a, a) for a in actuals], location))
        return
    raise HlsError(
        location, "the dataflow function may contain stream declarations and process calls only"
    )


def _interfaces(top: Top, pragmas: list[Pragma]) -> None:
    names = {n for n, _ in top.args}
    for pragma in pragmas:
        if pragma.kind != "interface":
            continue
        port = pragma.options.get("port", "")
        mode = pragma.options.get("mode", next(iter(pragma.words), ""))
        if port != "return" and port not in names:
            raise HlsError(
                pragma.location, f"pragma HLS interface: {top.name} has no argument '{port}'"
            )
        if mode != "m_axi":
            continue
        bundle = pragma.options.get("bundle", port)
        if bundle in top.bundles.values():
            raise HlsError(
                pragma.location,
                f"bundle {bundle} is used twice; give every m_axi port its own bundle",
            )
        top.bundles[port] = bundle
