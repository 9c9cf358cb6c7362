"""What simulation reports by itself: a deadlock, and a dependence pragma that promised too much."""

from __future__ import annotations

import hlsc_bench as bench
from hlsc import Options
from hlsc_harness import HERE, build, compile_to, run

PORTS = ["port:src", "port:dst", "scalar:n"]


def simulate(body: str, tmp_path, cache, options: Options | None = None):
    """Put ``work`` into the frame of the reject tests, run it on RTL."""
    source = tmp_path / "program.cpp"
    reject = HERE / "reject"
    source.write_text(f'#include "{reject}/head.h"\n{body}\n#include "{reject}/frame.h"\n')
    compile_to(source, "core", tmp_path, options)
    text = bench.bench("core", PORTS, first="30", limit=50_000)
    program = build(source, "core", text, tmp_path, cache)
    done = run([program, 1, 1], check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_deadlock_names_process_and_stream(tmp_path, runtime_cache):
    body = """
    void split(uint32_t n, toks &in, toks &left, toks &right) {
      for (uint32_t i = 0; i < n; i++) {
        tok t = in.read();
        left.write(t);
        if (i == n - 1) right.write(t);
      }
    }
    void join(uint32_t n, toks &left, toks &right, toks &out) {
      tok last = right.read();
      for (uint32_t i = 0; i < n; i++) {
        tok t = left.read();
        t.a += last.b;
        out.write(t);
      }
    }
    #define work(n, in, out) toks left, right; split(n, in, left, right); join(n, left, right, out)
    """
    code, text = simulate(body, tmp_path, runtime_cache)
    assert code != 0
    assert "hlsc deadlock: process split waits for room in stream left" in text
    assert "hlsc deadlock: process join waits for data on stream right" in text
    assert "hlsc deadlock: no process moved for 4096 cycles" in text


HISTOGRAM = """
    void work(uint32_t n, toks &in, toks &out) {
      static uint32_t count[4];
      for (uint32_t i = 0; i < n; i++) {
    #pragma HLS pipeline II=1
    #pragma HLS dependence variable=count inter false
        tok t = in.read();
        count[t.a & 3] += 1;
        out.write(t);
      }
    }
    """


def test_a_false_dependence_promise_stops_the_simulation(tmp_path, runtime_cache):
    options = Options(check_dependences=True)
    code, text = simulate(HISTOGRAM, tmp_path, runtime_cache, options)
    assert code != 0
    assert "array 'count': iterations 1 apart do depend on each other (lines 9 and 9)" in text
