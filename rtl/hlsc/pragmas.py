"""``#pragma HLS``: reads the preprocessed source, checks every pragma and rewrites it into
something clang keeps.

A pragma that belongs to an object or a loop becomes a call of a ``__hls_*`` marker at the same
place, so that clang itself resolves names, constants and templates; ``unroll`` becomes clang's own
loop pragma. All lines keep their numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .errors import HlsError, Location

_TOKEN = re.compile(
    r"""(?P<line>^[ \t]*\#[ \t]*(?:line[ \t]+)?\d+[ \t]+"[^"\n]*"[^\n]*)
      | (?P<pragma>^[ \t]*\#[ \t]*pragma[^\n]*)
      | (?P<raw>\bu?8?R"(?P<delim>[^()\s]*)\((?:.|\n)*?\)(?P=delim)")
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<number>\d[\w.']*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<newline>\n)
      | (?P<space>[ \t\r]+)
      | (?P<punct>.)""",
    re.M | re.X,
)

_ALLOWED = {  # pragma -> options with a value, bare words
    "pipeline": ({"ii"}, {"off"}),
    "unroll": (set(), {"off"}),
    "array_partition": ({"variable", "dim", "factor", "type"}, {"complete", "cyclic", "block"}),
    "dependence": (
        {"variable", "type", "direction", "distance", "dependent"},
        {"inter", "raw", "war", "waw", "true", "false"},
    ),
    "stream": ({"variable", "depth"}, set()),
    "interface": (
        {
            "mode",
            "port",
            "bundle",
            "offset",
            "depth",
            "latency",
            "max_read_burst_length",
            "max_write_burst_length",
            "num_read_outstanding",
            "num_write_outstanding",
            "max_widen_bitwidth",
        },
        {"m_axi", "s_axilite", "ap_ctrl_hs", "ap_none"},
    ),
    "dataflow": (set(), set()),
    "inline": (set(), {"off", "recursive"}),
    "bind_storage": ({"variable", "type", "impl", "latency"}, set()),
    "loop_tripcount": ({"min", "max", "avg"}, set()),
}


@dataclass
class Pragma:
    """One pragma: its options by lower-case name, its place, and for loop pragmas the pipelined
    loop it is in.
    """

    kind: str
    options: dict[str, str]
    words: set[str]
    location: Location
    loop_index: int | None = None
    loop_location: Location | None = None


@dataclass
class _Token:
    kind: str
    text: str
    location: Location
    system: bool


@dataclass
class _Scope:
    """An open brace: of a loop body (``loop``: index of its keyword token) or anything else."""

    loop: int | None
    only_pragmas: bool = True
    pipeline: int | None = None


@dataclass
class Rewritten:
    """The text for clang, and the pragmas that the markers' indices point into."""

    text: str
    pragmas: list[Pragma] = field(default_factory=list)


def tokenize(text: str) -> list[_Token]:
    """Split preprocessed C++; every token knows its file and line from the line markers."""
    tokens, file, line, system = [], "<source>", 1, False
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "delim" else "raw"
        value = match.group(0)
        tokens.append(_Token(kind, value, Location(file, line), system))
        if kind == "line":
            number, name, flags = re.match(
                r'[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"([^"]*)"(.*)', value
            ).groups()
            file, line, system = name, int(number) - 1, "3" in flags.split()
        else:
            line += value.count("\n")
    return tokens


def parse_pragma(token: _Token) -> Pragma | None:
    """Read one ``#pragma`` line; None if it is not an HLS pragma."""
    words = token.text.split("pragma", 1)[1].strip()
    if not re.match(r"HLS\b", words, re.I):
        return None
    body = re.sub(r"\s*=\s*", "=", words[3:].strip())
    parts = body.split()
    kind = parts[0].lower() if parts else ""
    if kind not in _ALLOWED:
        raise HlsError(
            token.location,
            f"pragma HLS {kind} is not supported; supported are {', '.join(sorted(_ALLOWED))}",
        )
    named, bare = _ALLOWED[kind]
    pragma = Pragma(kind, {}, set(), token.location)
    for part in parts[1:]:
        name, equals, value = part.partition("=")
        if (name.lower() not in named) if equals else (part.lower() not in bare):
            raise HlsError(token.location, f"pragma HLS {kind}: option '{part}' is not supported")
        if equals:
            pragma.options[name.lower()] = value
        else:
            pragma.words.add(part.lower())
    return pragma


def rewrite(text: str) -> Rewritten:
    """Turn HLS pragmas into markers; loops without an unroll pragma are told to stay loops."""
    return _Rewriter(tokenize(text)).run()


class _Rewriter:
    def __init__(self, tokens: list[_Token]):
        self.tokens = tokens
        self.out = [t.text for t in tokens]
        self.result = Rewritten("")
        self.scopes: list[_Scope] = []
        self.body_of: dict[
            int, int
        ] = {}  # token index of a loop body's '{' -> token index of its keyword
        self.unrolled: set[int] = set()
        self.tails: set[int] = set()  # 'while' tokens that end a do loop

    def run(self) -> Rewritten:
        loops = []
        for index, token in enumerate(self.tokens):
            if token.kind == "word" and token.text in ("for", "while", "do") and not token.system:
                if index not in self.tails:
                    loops.append(index)
                    self.find_body(index)
            elif token.kind == "punct":
                self.brace(index, token)
            elif token.kind == "pragma":
                self.pragma(index, token)
                continue
            if token.kind not in ("space", "newline", "line") and token.text != "{" and self.scopes:
                self.scopes[-1].only_pragmas = False
        for index in loops:
            mode = "full" if index in self.unrolled else "disable"
            self.out[index] = f'_Pragma("clang loop unroll({mode})") {self.out[index]}'
        self.result.text = "".join(self.out)
        return self.result

    def brace(self, index: int, token: _Token) -> None:
        if token.text == "{":
            if self.scopes:
                self.scopes[-1].only_pragmas = False
            self.scopes.append(_Scope(self.body_of.get(index)))
        elif token.text == "}" and self.scopes:
            self.scopes.pop()

    def next_code(self, index: int) -> int:
        """Index of the next token that is neither space nor a pragma."""
        index += 1
        while index < len(self.tokens) and self.tokens[index].kind in (
            "space",
            "newline",
            "line",
            "pragma",
        ):
            index += 1
        return index

    def skip_group(self, index: int) -> int:
        """From an opening bracket to its closing one."""
        depth = 0
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.kind == "punct" and token.text in "([{":
                depth += 1
            elif token.kind == "punct" and token.text in ")]}":
                depth -= 1
                if depth == 0:
                    return index
            index += 1
        raise HlsError(self.tokens[-1].location, "unbalanced brackets")

    def find_body(self, keyword: int) -> None:
        start = self.next_code(keyword)
        if self.tokens[keyword].text == "do":
            if self.tokens[start].text != "{":
                raise HlsError(
                    self.tokens[keyword].location, "the body of a do loop must be in braces"
                )
            self.tails.add(self.next_code(self.skip_group(start)))
        else:
            start = self.next_code(self.skip_group(start))
        if self.tokens[start].text == "{":
            self.body_of[start] = keyword

    def pragma(self, index: int, token: _Token) -> None:
        pragma = parse_pragma(token)
        if pragma is None:
            return
        if not self.scopes:
            raise HlsError(pragma.location, f"pragma HLS {pragma.kind} must be inside a function")
        self.out[index] = getattr(self, "on_" + pragma.kind)(pragma, self.scopes[-1])

    def marker(self, pragma: Pragma, call: str) -> str:
        """A call that carries the pragma's index as the text ``@``."""
        self.result.pragmas.append(pragma)
        return call.replace("@", str(len(self.result.pragmas) - 1))

    def variable(self, pragma: Pragma) -> str:
        name = pragma.options.get("variable", "")
        if not re.fullmatch(r"[A-Za-z_]\w*(::\w+)*", name):
            raise HlsError(
                pragma.location, f"pragma HLS {pragma.kind} needs variable=<name>, not '{name}'"
            )
        return f"(const void *)&{name}"

    def on_pipeline(self, pragma: Pragma, scope: _Scope) -> str:
        if scope.loop is None or not scope.only_pragmas:
            raise HlsError(
                pragma.location, "pragma HLS pipeline must be the first line of a loop body"
            )
        if "off" in pragma.words:
            return ""
        scope.pipeline = len(self.result.pragmas)
        pragma.loop_location = self.tokens[scope.loop].location
        return self.marker(pragma, f"__hls_pipeline(@, ({pragma.options.get('ii', '1')}));")

    def on_unroll(self, pragma: Pragma, scope: _Scope) -> str:
        if scope.loop is None or not scope.only_pragmas:
            raise HlsError(
                pragma.location, "pragma HLS unroll must be the first line of a loop body in braces"
            )
        if "off" not in pragma.words:
            self.unrolled.add(scope.loop)
        return ""

    def on_dependence(self, pragma: Pragma, scope: _Scope) -> str:
        loop = scope.pipeline
        if loop is None:
            raise HlsError(
                pragma.location, "pragma HLS dependence must follow the pipeline pragma of its loop"
            )
        words, options = pragma.words, {k: v.lower() for k, v in pragma.options.items()}
        if "inter" not in words and options.get("type") != "inter":
            raise HlsError(
                pragma.location,
                "pragma HLS dependence: only inter (between iterations) is supported",
            )
        dependent = "true" in words or options.get("dependent") == "true"
        if dependent != ("distance" in options):
            raise HlsError(
                pragma.location,
                "pragma HLS dependence: give 'false', or 'true' with distance=<iterations>",
            )
        pragma.loop_index = loop
        return self.marker(
            pragma,
            f"__hls_dependence({self.variable(pragma)}, @, ({options.get('distance', '0')}));",
        )

    def on_array_partition(self, pragma: Pragma, scope: _Scope) -> str:
        kind = (pragma.words or {pragma.options.get("type", "complete")}) & {
            "complete",
            "cyclic",
            "block",
        }
        if len(kind) != 1:
            raise HlsError(
                pragma.location, "pragma HLS array_partition needs one of complete, cyclic, block"
            )
        pragma.words = kind
        if ("factor" in pragma.options) == ("complete" in kind):
            raise HlsError(
                pragma.location,
                "pragma HLS array_partition: factor=<banks> goes with cyclic and block only",
            )
        factor, dim = pragma.options.get("factor", "0"), pragma.options.get("dim", "1")
        return self.marker(pragma, f"__hls_array({self.variable(pragma)}, @, ({factor}), ({dim}));")

    def on_stream(self, pragma: Pragma, scope: _Scope) -> str:
        if "depth" not in pragma.options:
            raise HlsError(pragma.location, "pragma HLS stream needs depth=<tokens>")
        return f"__hls_stream_depth({self.variable(pragma)}, ({pragma.options['depth']}));"

    def on_interface(self, pragma: Pragma, scope: _Scope) -> str:
        self.result.pragmas.append(pragma)
        return ""

    def on_bind_storage(self, pragma: Pragma, scope: _Scope) -> str:
        self.variable(pragma)
        return ""

    def on_dataflow(self, pragma: Pragma, scope: _Scope) -> str:
        return ""

    on_inline = on_loop_tripcount = on_dataflow
