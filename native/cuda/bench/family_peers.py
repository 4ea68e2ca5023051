"""Times the models of native/bench/families.py and models.py on a GPU in PyTorch: training steps by fused AdamW,
compiled where PyTorch can, and captured as a CUDA graph where it can. h200.sh packs these files.

    RLX_BENCH_TIMES=8 python3 family_peers.py [NAME ...]   of families.py, or those named

RLX_BENCH_PRECISIONS has those wanted of bf16 and tf32, with a comma between them. With RLX_BENCH_FORWARD=1 losses are
timed without their gradients.

A line for each family and precision: ms of a step (the better of the launched and the captured
one), MiB at most, and how the better ran. Each step has a process of its own, so that the workspaces of cuBLAS
count for the steps that use them. Steps are compiled by many processes at a time and timed by one.
"""
import concurrent.futures
import os
import subprocess
import sys

PRECISIONS = os.environ.get("RLX_BENCH_PRECISIONS", "bf16,tf32").split(",")
FORWARD = os.environ.get("RLX_BENCH_FORWARD") == "1"
WORKERS = 16


def launched(name, precision):
    """A training step, how it runs, and the bytes that it holds between steps."""
    import torch

    import families

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    for compiled in (True, False):
        before = torch.cuda.memory_allocated()
        model, loss = families.built(name, compiled, "cuda")
        adam = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, fused=True, capturable=True)

        def forward():
            with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
                return loss()

        def train():
            adam.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
                value = loss()
            value.backward()
            adam.step()

        step = forward if FORWARD else train
        try:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            return step, "compile" if compiled else "eager", torch.cuda.memory_allocated() - before
        except Exception as failure:
            print(name, precision, "compiled" if compiled else "eager", str(failure)[:300].replace("\n", " "), file=sys.stderr)
    return None, "–", 0


def replay_of(step):
    """The step as a CUDA graph, or none."""
    from peers import captured

    try:
        return captured(step)
    except Exception as failure:
        print("not captured:", str(failure)[:200].replace("\n", " "), file=sys.stderr)
        return None


def time_step(step, how, held):
    """The better time of a step in ms, its memory in MiB, and how it ran."""
    import torch

    from peers import torch_seconds

    others = torch.cuda.memory_allocated() - held
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    peak = (torch.cuda.max_memory_allocated() - others) / 2**20
    best, replay = torch_seconds(step, 10, 5), replay_of(step)
    if replay:
        seconds = torch_seconds(replay, 10, 5)
        if seconds < best:
            best, how = seconds, how + " graph"
    return f"{best * 1e3:.3f} {peak:.0f} {how}"


def worker(name, precision):
    """Compiles a step, says so, and times it when a line comes."""
    step, how, held = launched(name, precision)
    print("ready", flush=True)
    sys.stdin.readline()
    print(f"{name:16s} {precision} {time_step(step, how, held) if step else '– – –'}", flush=True)


def begin(job):
    """The process of a family and a precision, whose step is compiled."""
    env = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2", "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor/" + "-".join(job)}
    process = subprocess.Popen([sys.executable, __file__, "worker", *job], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    process.stdout.readline()
    return process


def main():
    import families

    jobs = [(name, precision) for name in sys.argv[1:] or families.FAMILIES for precision in PRECISIONS]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        processes = list(pool.map(begin, jobs))
    for process in processes:
        out, _ = process.communicate("go\n")
        print(out, end="", flush=True)


if __name__ == "__main__":
    worker(*sys.argv[2:]) if sys.argv[1:2] == ["worker"] else main()
