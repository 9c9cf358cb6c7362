"""Rewrites clang's unoptimised IR for the optimiser: marker calls become calls that LLVM
understands.

A stream access takes its token through memory in the source. Here it becomes one call that returns
(or takes) every scalar of the token as a value, so that the optimiser can dissolve the structs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import HlsError
from .layout import Layout, split_commas

_DEFINE = re.compile(r"^define [^\n]*?@([\w.$]+|\"[^\"\n]+\")\(")
_ACCESS = re.compile(r"^  call void @__hls_(rd|wr|mrd|mwr)\((.*?)\)( #\d+)?(, !dbg !\d+)?$")
_EFFECT = "nounwind willreturn memory(inaccessiblemem: readwrite)"
_READS = ("rd", "mrd")
_COPY = re.compile(
    r"^  call void @llvm\.mem(?:cpy|move)[\w.]*\((ptr [^,]*), (ptr [^,]*), i64 (\d+), i1 false\)"
    r"( #\d+)?(, !dbg !\d+)?$"
)
_GEP = re.compile(r"  (%[\w.]+) = getelementptr (?:inbounds |nuw |nusw )*(.*?)(?:, !dbg !\d+)?$")


@dataclass
class Prepared:
    """IR text ready for opt, and the names of the process functions in call order."""

    text: str
    processes: list[str]


def prepare(ir_text: str, top: str) -> Prepared:
    """Rewrite the module; ``top`` is the dataflow function."""
    ir_text = re.sub(r"^  #dbg_\w+\(.*\n", "", ir_text, flags=re.M)
    processes = _find_processes(ir_text, top)
    rewriter = _Rewriter(Layout(ir_text), set(processes), top)
    lines = rewriter.run(ir_text.split("\n"))
    return Prepared("\n".join(lines), processes)


def _find_processes(ir_text: str, top: str) -> list[str]:
    match = re.search(rf"^define [^\n]*@{re.escape(top)}\(.*?^}}", ir_text, re.S | re.M)
    if not match:
        raise HlsError(None, f'there is no function extern "C" {top} in the source')
    defined = set(re.findall(r"^define [^\n]*?@([\w.$]+)\(", ir_text, re.M))
    called = re.findall(r"call [^\n]*?@([\w.$]+)\(", match.group(0))
    processes = [c for c in called if c in defined and not re.match(r"_ZNK?3hls", c)]
    twice = {c for c in processes if processes.count(c) > 1}
    if twice:
        names = ", ".join(sorted(function_label(n) for n in twice))
        raise HlsError(
            None, f"{top}: process {names} is called twice; give each call its own function"
        )
    if not processes:
        raise HlsError(None, f"{top}: the dataflow function calls no process")
    return processes


def function_label(name: str) -> str:
    """``_Z4loadN3hls...`` -> ``load``; template instances get their parameters as a suffix."""
    match = re.match(r"_ZL?(\d+)", name)
    if not match:
        return re.sub(r"\W", "_", name)
    start, length = match.end(), int(match.group(1))
    label, rest = name[start : start + length], name[start + length :]
    if rest.startswith("I"):
        label += "_" + "_".join(re.findall(r"L[a-z](\d+)E", rest.split("EE", 1)[0] + "E"))
    return label


class _Rewriter:
    def __init__(self, layout: Layout, processes: set[str], top: str):
        self.layout, self.processes, self.top = layout, processes, top
        self.count = 0
        self.declares: dict[str, str] = {}
        self.local_types: dict[str, str] = {}

    def run(self, lines: list[str]) -> list[str]:
        out = []
        for line in lines:
            if line.startswith("define "):
                out.append(self.define(line))
            elif line.startswith("  %"):
                self.note_type(line)
                out.append(line)
            elif line.startswith("  call void @llvm.mem"):
                out.extend(self.copy(line))
            elif line.startswith("  call void @__hls_"):
                out.extend(self.call(line))
            elif line.startswith("declare void @__hls_"):
                out.append(self.declare(line))
            else:
                out.append(line)
        out += [f"declare {signature} {_EFFECT}" for signature in self.declares.values()]
        return out

    def define(self, line: str) -> str:
        """Inline everything into the processes; attribute groups go, so that no source attribute
        can interfere.
        """
        name = _DEFINE.match(line).group(1)
        self.local_types = {}
        for argument in split_commas(line[line.index("(", line.index("@")) + 1 : line.rindex(")")]):
            if match := re.search(r"sret\((.*)\).* (%[\w.]+)$", argument):
                self.local_types[match.group(2)] = match.group(1)
        line = re.sub(r" #\d+", "", line)
        line = re.sub(r' section "[^"]*"', "", line)
        line = re.sub(r" comdat(\(\$[^)]*\))?", "", line)
        line = re.sub(r"^define (linkonce_odr|internal|weak_odr) ", "define ", line)
        line = re.sub(r"^define (dso_local )?", "define ", line)
        if name in self.processes:
            attribute = "noinline"
        elif name == self.top:
            attribute = ""
        else:
            attribute, line = "alwaysinline", line.replace("define ", "define internal ", 1)
        return re.sub(r"( !dbg !\d+)? \{$", rf" {attribute}\1 {{", line)

    def note_type(self, line: str) -> None:
        """Remember what type a local pointer points to."""
        if match := re.match(r"  (%[\w.]+) = alloca (.*?), align", line):
            self.local_types[match.group(1)] = match.group(2)
        elif match := _GEP.match(line):
            kind, _, *indices = split_commas(match.group(2))
            for index in indices[1:]:
                if array := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
                    kind = array.group(2)
                else:
                    kind = self.layout.fields(kind)[int(index.split()[-1])][1]
            self.local_types[match.group(1)] = kind

    def copy(self, line: str) -> list[str]:
        """A copied struct becomes a copy of its scalars, which the optimiser can follow."""
        match = _COPY.match(line)
        if not match:
            return [line]
        target, source, num_bytes, _, debug = match.groups()
        target, source, debug = target.split()[-1], source.split()[-1], debug or ""
        kinds = [self.local_types.get(p) for p in (target, source)]
        kind = next(
            (k for k in kinds if k and k != "ptr" and self.layout.measure(k)[0] == int(num_bytes)),
            None,
        )
        if kind is None or kind == "ptr" or "ptr" in self.layout.structs.get(kind, kind):
            return [line]
        out = []
        for offset, bits in self.layout.leaves(kind):
            self.count += 1
            name = f"%copy{self.count}"
            out += [
                f"  {name}.s = getelementptr i8, ptr {source}, i64 {offset}{debug}",
                f"  {name}.d = getelementptr i8, ptr {target}, i64 {offset}{debug}",
                f"  {name} = load i{bits}, ptr {name}.s, align 1{debug}",
                f"  store i{bits} {name}, ptr {name}.d, align 1{debug}",
            ]
        return out

    def declare(self, line: str) -> str:
        name = re.search(r"@__hls_(\w+)", line).group(1)
        if name in ("rd", "wr", "mrd", "mwr"):
            return ""
        line = re.sub(r" #\d+", "", line)
        return re.sub(r"ptr noundef", "ptr nocapture", line) + " " + _EFFECT

    def call(self, line: str) -> list[str]:
        match = _ACCESS.match(line)
        if match:
            return self.access(match)
        if re.match(r"  call void @__hls_(array|dependence)\(", line):
            pointer = re.search(r"\(ptr noundef ([^,]+),", line).group(1)
            if pointer.startswith("%"):
                if pointer in self.local_types:
                    return []  # a local array has to dissolve anyway
                return [line]
        return [line]

    def access(self, match) -> list[str]:
        kind, arguments, _, debug = match.groups()
        debug = debug or ""
        pointer, memory = (a.split()[-1] for a in split_commas(arguments)[:2])
        type_text = self.local_types.get(memory)
        if type_text is None:
            raise HlsError(None, f"internal: the token type of {match.group(0).strip()} is unknown")
        leaves = self.layout.leaves(type_text)
        self.count += 1
        names = [f"%hls{self.count}.{k}" for k in range(len(leaves))]
        places = [
            f"  {name}.p = getelementptr i8, ptr {memory}, i64 {offset}{debug}"
            for name, (offset, _) in zip(names, leaves, strict=False)
        ]
        tuple_type = "{ " + ", ".join(f"i{bits}" for _, bits in leaves) + " }"
        if kind in _READS:
            return self.read(kind, pointer, names, leaves, places, tuple_type, debug)
        return self.write(kind, pointer, names, leaves, places, debug)

    def read(self, kind, pointer, names, leaves, places, tuple_type, debug) -> list[str]:
        callee = self.callee(kind, tuple_type, tuple_type, "ptr")
        token = f"%hls{self.count}"
        out = [f"  {token} = call {tuple_type} {callee}(ptr {pointer}){debug}"]
        for k, (name, (_, bits)) in enumerate(zip(names, leaves, strict=False)):
            out += [
                f"  {name} = extractvalue {tuple_type} {token}, {k}{debug}",
                places[k],
                f"  store i{bits} {name}, ptr {name}.p, align 1{debug}",
            ]
        return out

    def write(self, kind, pointer, names, leaves, places, debug) -> list[str]:
        out = []
        for place, name, (_, bits) in zip(places, names, leaves, strict=False):
            out += [place, f"  {name} = load i{bits}, ptr {name}.p, align 1{debug}"]
        types = ", ".join(f"i{bits}" for _, bits in leaves)
        callee = self.callee(kind, types, "void", f"ptr, {types}")
        values = ", ".join(
            f"i{bits} {name}" for name, (_, bits) in zip(names, leaves, strict=False)
        )
        return [*out, f"  call void {callee}(ptr {pointer}, {values}){debug}"]

    def callee(self, kind: str, key: str, result: str, arguments: str) -> str:
        """The declared function for one access kind and token type."""
        key = f"{kind} {key}"
        if key not in self.declares:
            self.declares[key] = f"{result} @hls.{kind}.{len(self.declares)}({arguments})"
        return re.search(r"@hls\.\w+\.\d+", self.declares[key]).group(0)
