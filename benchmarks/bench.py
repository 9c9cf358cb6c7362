"""The simulator against PyTorch on the same CPU, and what compiling the named networks takes.

    python benchmarks/bench.py [--runtime build/rasna-pynq-z2.so] [--net NAME ...] [--quick]

Every network runs in a process of its own, at 80 % zeros and dense, batch 1, one thread. PyTorch
computes in fp32 and is measured right before and after the simulator; the ratio says how many
times faster the simulator is. Times are the median of several runs. Memory is the peak of the
process during compilation, PyTorch and the model included.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NETS = ("digits", "resnet8", "resnet20", "resnet18_32", "resnet18_224", "resnet50_224",
        "mobilenet_v1", "vgg16", "ds_cnn")
SPARSITIES = (0.8, 0.0)
COLUMNS = (
    ("network", "net", "{}"), ("zeros", "sp", "{:.0%}"), ("compile s", "compile_s", "{:.1f}"),
    ("peak MB", "peak_mb", "{:.0f}"), ("file MB", "file_mb", "{:.2f}"),
    ("load ms", "load_ms", "{:.0f}"), ("cycles (est.)", "cycles", "{:,}"),
    ("simulator ms", "simulator_ms", "{:.2f}"), ("PyTorch ms", "torch_ms", "{:.2f}"),
    ("ratio", "ratio", "{:.2f}"),
)


def median_ms(call, seconds: float) -> float:
    """Median time of a call in milliseconds, over about ``seconds``, at least 3 runs."""
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def measure(net: str, sp: float, runtime_path: str, seconds: float) -> dict:
    """One row of the table; runs in a process of its own."""
    import torch

    import rasna
    from tests.models import zoo

    torch.set_num_threads(1)
    model = zoo.build(net)
    if sp:
        zoo.prune_(model, sp)
    inputs = zoo.sample(net, batch=1)
    start = time.perf_counter()
    program = rasna.compile(model, *inputs, channel_last=False, target=target_of(runtime_path))
    compile_s = time.perf_counter() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    path = ROOT / "build" / f"bench-{net}.rasna"
    program.save(path)
    start = time.perf_counter()
    runtime = rasna.load(path).to_runtime(runtime_path)
    load_ms = (time.perf_counter() - start) * 1e3
    arrays = [x.numpy() for x in inputs]
    with torch.inference_mode():
        before = median_ms(lambda: model(*inputs), seconds / 2)
        simulator_ms = median_ms(lambda: runtime(*arrays, channel_last=False), seconds)
        after = median_ms(lambda: model(*inputs), seconds / 2)
    torch_ms = min(before, after)
    return dict(
        net=net, sp=sp, compile_s=compile_s, peak_mb=peak_mb,
        file_mb=path.stat().st_size / 1e6, load_ms=load_ms,
        cycles=sum(layer["cycles"] for layer in program.layers),
        simulator_ms=simulator_ms, torch_ms=torch_ms, ratio=torch_ms / simulator_ms,
    )


def target_of(path: str) -> str:
    """The target in the name of a simulator object, as build/rasna-pynq-z2.so."""
    return Path(path).stem.removeprefix("rasna-").removesuffix("-exact")


def row(net: str, sp: float, args) -> dict | None:
    command = [sys.executable, __file__, "--child", net, str(sp), "--runtime", args.runtime,
               "--seconds", str(args.seconds)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        print(f"{net} at {sp}: failed\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtime", default=str(ROOT / "build" / "rasna-pynq-z2.so"))
    parser.add_argument("--net", action="append", choices=NETS)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of each measurement")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.runtime = str(Path(args.runtime).resolve())
    sys.path[:0] = [str(ROOT), str(ROOT / "python")]
    if args.child:
        print(json.dumps(measure(args.child[0], float(args.child[1]), args.runtime, args.seconds)))
        return 0
    if not Path(args.runtime).exists():
        print(f"{args.runtime} does not exist; build it with: make sim-so", file=sys.stderr)
        return 1
    cells = [[title for title, _, _ in COLUMNS]]
    failed = False
    for net in args.net or NETS:
        for sp in SPARSITIES:
            result = row(net, sp, args)
            failed |= result is None
            if result:
                cells.append([form.format(result[key]) for _, key, form in COLUMNS])
                print(f"measured {net} at {sp:.0%} zeros", file=sys.stderr)
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    for line in cells:
        print("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)))
    print("ratio: PyTorch fp32 time / simulator time, one thread, batch 1; above 1 the simulator "
          "is faster")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
