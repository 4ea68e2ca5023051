"""Prints what the benchmarks of native/cuda and peers.py have written, job by job.

    python3 table.py bench.log peers.log            Markdown: rlx, and each peer with how many times as fast rlx is
    python3 table.py families bench.log peers.log   of BenchmarkFamilies, BenchmarkFurther, BenchmarkUnusual, BenchmarkModels or BenchmarkForward, and family_peers.py: times, memory, and ratios to PyTorch's
"""
import re
import sys

# Each job as peers.py calls it, the benchmark of the same, and the unit to compare by.
JOBS = [
    ("MLP step, batch 128, f32", "BenchmarkStep/MLP_784-512-512-10_batch_128/resident", "us"),
    ("MLP step, batch 4096, f32", "BenchmarkStep/MLP_784-512-512-10_batch_4096/resident", "us"),
    ("CNN step, batch 256, f32", "BenchmarkStep/CNN_of_MNIST_batch_256/resident", "us"),
    ("matmul 4096, f32", "BenchmarkMatMul/4096", "TFLOP/s"),
    ("matmul 4096, tf32", "BenchmarkMatMul/4096_tf32", "TFLOP/s"),
    ("matmul 8192, tf32", "BenchmarkMatMul/8192_tf32", "TFLOP/s"),
    ("matmul 8192, bf16", "BenchmarkMatMul/8192_bf16", "TFLOP/s"),
    ("softmax 16384x4096, f32", "BenchmarkRows/softmax", "GB/s"),
    ("layer norm 16384x4096, f32", "BenchmarkRows/layer_norm", "GB/s"),
    ("gelu 16384x4096, f32", "BenchmarkRows/gelu", "GB/s"),
    ("attention forward", "BenchmarkAttention/2048/64/causal=true/bf16/backward=false", "TFLOP/s"),
    ("attention backward", "BenchmarkAttention/2048/64/causal=true/bf16/backward=true", "TFLOP/s"),
    ("GPT-2 124M step, bf16", "BenchmarkGPT2/bf16/step", "tokens/s"),
    ("GPT-2 124M step, tf32", "BenchmarkGPT2/tf32/step", "tokens/s"),
]

# The programs of peers.py, by the column they stand in.
PEERS = {"PyTorch": "PyTorch", "PyTorch graph": "PyTorch", "PyTorch compile": "PyTorch", "JAX jit": "JAX"}


def benchmarks(lines):
    """The numbers of each benchmark, by unit."""
    out = {}
    for line in lines:
        if found := re.match(r"(Benchmark\S+?)-\d+\s+\d+\s+(.*)", line):
            numbers = re.findall(r"([\d.]+) (\S+)", found[2])
            values = {unit: float(x) for x, unit in numbers}
            values["us"] = values.get("ns/op", 0) / 1e3
            out[found[1]] = values
    return out


def peers(lines):
    """The numbers of each job and column, by unit."""
    out = {}
    for line in lines:
        if found := re.match(r"(.+?)  +(\S+(?: \S+)?) +([\d.,]+) us +([\d.,]+) (\S+)", line):
            job, peer, us, rate, unit = found.groups()
            if peer in PEERS:
                number = {"us": us, unit: rate}
                out[job, PEERS[peer]] = {k: float(v.replace(",", "")) for k, v in number.items()}
    return out


def cell(own, other, unit):
    if other is None or unit not in other:
        return "–"
    ratio = other[unit] / own if unit == "us" else own / other[unit]
    return f"{other[unit]:,.0f} (× {ratio:.2f})"


def families(own, lines):
    """Prints a line for each step of these benchmarks; lines are of family_peers.py."""
    theirs = {}
    for line in lines:
        if found := re.match(r"(\w+(?: \w+)*) +(bf16|tf32) ([\d.]+) (\d+) (.+)", line):
            theirs[found[1], found[2]] = float(found[3]), float(found[4]), found[5]
    print(f"{'family':19s} {'':4s} {'rlx ms':>8s} {'PyTorch':>8s} {'ratio':>6s} {'MiB':>7s} {'PyTorch':>8s} {'ratio':>6s}  PyTorch's step")
    for name, values in own.items():
        if not re.match("Benchmark(Families|Further|Unusual|Models|Forward)/", name):
            continue
        _, family, precision = name.split("/")
        family = family.replace("_", " ")
        ms, memory = values["ms"], values["planned-MiB"]
        line = f"{family:19s} {precision} {ms:8.3f}"
        if peer := theirs.get((family, precision)):
            line += f" {peer[0]:8.3f} {ms / peer[0]:6.2f} {memory:7.0f} {peer[1]:8.0f} {memory / max(peer[1], 1):6.2f}  {peer[2]}"
        else:
            line += f" {'–':>8s} {'–':>6s} {memory:7.0f}"
        print(line)


def jobs(own, others):
    """Prints a line of Markdown for each of JOBS."""
    print("| job | unit | rlx | PyTorch | JAX |\n|---|---|---|---|---|")
    for job, name, unit in JOBS:
        if name in own:
            x = own[name][unit]
            cells = [cell(x, others.get((job, column)), unit) for column in ("PyTorch", "JAX")]
            print(f"| {job} | {unit.replace('us', 'µs')} | {x:,.0f} | {' | '.join(cells)} |")


def main():
    wanted = sys.argv[1:]
    apart = wanted[:1] == ["families"]
    lines = [line for name in wanted[apart:] for line in open(name, encoding="utf-8")]
    if apart:
        families(benchmarks(lines), lines)
    else:
        jobs(benchmarks(lines), peers(lines))


if __name__ == "__main__":
    main()
