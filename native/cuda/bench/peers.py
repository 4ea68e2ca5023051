"""Times what BenchmarkStep, BenchmarkGPT2, BenchmarkMatMul, BenchmarkRows, BenchmarkMatrices,
BenchmarkFourier, BenchmarkAttention and BenchmarkResNets of native/cuda time, in PyTorch and JAX on the same GPU.

    python3 peers.py            every job, each in a process of its own
    python3 peers.py gpt2 rows  some

A line for each: job, peer, microseconds (the median of five groups of runs), rate.
"""
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def report(job, peer, seconds, rate="", unit=""):
    shown = f"{rate:12,.1f} {unit}" if unit else ""
    print(f"{job:36s} {peer:16s} {seconds * 1e6:12.1f} us {shown}", flush=True)


def torch_seconds(run, each=30, warm=10):
    """The seconds of one call of run, by events on the device."""
    import torch

    for _ in range(warm):
        run()
    groups = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(each):
            run()
        end.record()
        end.synchronize()
        groups.append(begin.elapsed_time(end) / 1e3 / each)
    return statistics.median(groups)


def jax_seconds(run, each=30, warm=5):
    """The seconds of one call of run, whose result is waited for at the end of a group."""
    import jax

    for _ in range(warm):
        last = run()
    jax.block_until_ready(last)
    groups = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(each):
            last = run()
        jax.block_until_ready(last)
        groups.append((time.perf_counter() - begin) / each)
    return statistics.median(groups)


def captured(step):
    """A function that replays a PyTorch step as a CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def replayed(step, each=200):
    """The seconds of a PyTorch step that was captured as a CUDA graph."""
    return torch_seconds(captured(step), each)


def classifier_step(model, x, labels):
    """A step of Adam of a classifier."""
    import torch

    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)

    def step():
        adam.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), labels).backward()
        adam.step()

    return step


def mlp():
    import functools

    import jax
    import jax.numpy as jnp
    import optax
    import torch
    from torch import nn

    sizes = (784, 512, 512, 10)
    for batch in (128, 4096):
        job = f"MLP step, batch {batch}, f32"
        x = torch.randn(batch, sizes[0], device="cuda")
        labels = torch.randint(0, 10, (batch,), device="cuda")
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
        seconds = replayed(classifier_step(model, x, labels))
        report(job, "PyTorch graph", seconds, 1 / seconds, "steps/s")

        keys = jax.random.split(jax.random.PRNGKey(0), 3)
        weights = [
            (0.05 * jax.random.normal(k, (m, n)), jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])
        ]
        adam = optax.adam(1e-3)
        jx, jlabels = jnp.asarray(x.cpu().numpy()), jnp.asarray(labels.cpu().numpy())

        def loss(weights):
            h = jx
            for i, (w, b) in enumerate(weights):
                h = jnp.dot(h, w, precision="highest") + b
                h = h if i == 2 else jax.nn.relu(h)
            return optax.softmax_cross_entropy_with_integer_labels(h, jlabels).mean()

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def step(weights, state):
            value, grads = jax.value_and_grad(loss)(weights)
            updates, state = adam.update(grads, state, weights)
            return optax.apply_updates(weights, updates), state, value

        held = [weights, adam.init(weights)]

        def run():
            held[0], held[1], value = step(*held)
            return value

        seconds = jax_seconds(run, 200)
        report(job, "JAX jit", seconds, 1 / seconds, "steps/s")


def cnn():
    import torch
    from torch import nn

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10),
    ).cuda()
    x = torch.randn(256, 1, 28, 28, device="cuda")
    seconds = replayed(classifier_step(model, x, torch.randint(0, 10, (256,), device="cuda")))
    report("CNN step, batch 256, f32", "PyTorch graph", seconds, 1 / seconds, "steps/s")


def matmul():
    import torch

    for n, name, kind, tf32 in (
        (4096, "f32", torch.float32, False), (4096, "tf32", torch.float32, True), (8192, "tf32", torch.float32, True),
        (1024, "bf16", torch.bfloat16, False), (4096, "bf16", torch.bfloat16, False), (8192, "bf16", torch.bfloat16, False),
    ):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(n, n, device="cuda").to(kind) for _ in range(2))
        seconds = torch_seconds(lambda: a @ b)
        report(f"matmul {n}, {name}", "PyTorch", seconds, 2 * n**3 / seconds / 1e12, "TFLOP/s")


def rows():
    import jax
    import jax.numpy as jnp
    import torch
    from torch.nn import functional as f

    shape = (16384, 4096)
    x = torch.randn(*shape, device="cuda")
    scale, bias = torch.ones(shape[1], device="cuda"), torch.zeros(shape[1], device="cuda")
    jx = jnp.asarray(x.cpu().numpy())

    def normed(x):
        centered = x - x.mean(-1, keepdims=True)
        return centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)

    jobs = {
        "softmax": (lambda: f.softmax(x, -1), jax.jit(lambda x: jax.nn.softmax(x, -1))),
        "layer norm": (lambda: f.layer_norm(x, shape[1:], scale, bias), jax.jit(normed)),
        "gelu": (lambda: f.gelu(x), jax.jit(jax.nn.gelu)),
    }
    for name, (in_torch, in_jax) in jobs.items():
        for peer, seconds in (("PyTorch", torch_seconds(in_torch)), ("JAX jit", jax_seconds(lambda: in_jax(jx)))):
            report(f"{name} 16384x4096, f32", peer, seconds, 2 * 4 * shape[0] * shape[1] / seconds / 1e9, "GB/s")


def matrices():
    import torch

    for batch, n in ((1024, 64), (64, 64), (1, 512), (1, 1024), (1, 2048), (1, 4096), (1, 8192)):
        x = torch.rand(batch, n, n, device="cuda") - 0.5
        x = torch.tril(x) + torch.tril(x, -1).mT + n * torch.eye(n, device="cuda")
        linalg = torch.linalg
        jobs = {
            "cholesky": lambda: linalg.cholesky(x),
            "lu": lambda: linalg.lu_factor(x),
            "solve": lambda: linalg.solve(x, x),
            "qr": lambda: linalg.qr(x),
            "eigh": lambda: linalg.eigh(x),
            "svd": lambda: linalg.svd(x, full_matrices=False),
        }
        for name, run in jobs.items():
            report(f"{name} of {batch} {n}x{n}, f32", "PyTorch", torch_seconds(run, 1 if name in ("eigh", "svd") else 5, 1))


def fourier():
    import torch

    x = torch.randn(16, 2**20, device="cuda", dtype=torch.complex64)
    y = torch.empty_like(x)
    for name, run in (("fft", lambda: torch.fft.fft(x)), ("copy", lambda: y.copy_(x))):
        seconds = torch_seconds(run)
        report(f"{name} of 16 x 2^20 complex64", "PyTorch", seconds, 2 * 8 * x.numel() / seconds / 1e9, "GB/s once")


def attention():
    import torch

    batch, heads, length, size = 8, 16, 2048, 64
    q, k, v = (torch.randn(batch, heads, length, size, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    attend = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    work = 2 * batch * heads * length * length * size  # of the two products, of which half the scores are seen
    seconds = torch_seconds(attend)
    report("attention forward", "PyTorch", seconds, work / seconds / 1e12, "TFLOP/s")
    out = attend()
    grad = torch.randn_like(out)
    seconds = torch_seconds(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
    report("attention backward", "PyTorch", seconds, 2.5 * work / seconds / 1e12, "TFLOP/s")


def gpt2_model(width=768, heads=12, blocks=12):
    """GPT-2, of 124M by default, with its vocabulary filled up to 50304, as irtest.PeerGPT2 has it."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    vocabulary, context = 50304, 1024

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            split = lambda t: t.unflatten(2, (heads, -1)).transpose(1, 2)
            q, k, v = map(split, self.qkv(self.norm1(x)).chunk(3, 2))
            mixed = f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            x = x + self.out(mixed)
            return x + self.down(f.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Parameter(0.02 * torch.randn(context, width))
            self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
            self.norm = nn.LayerNorm(width)

        def forward(self, ids, following):
            x = self.norm(self.blocks(self.tokens(ids) + self.positions))
            return f.cross_entropy(f.linear(x, self.tokens.weight).flatten(0, 1), following.flatten())

    return GPT2()


def gpt2():
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    ids, following = (torch.randint(0, 50257, (16, 1024), device="cuda") for _ in range(2))
    for name, half in (("bf16", True), ("tf32", False)):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model = gpt2_model().cuda()
        compiled = torch.compile(model)
        adam = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

        def step():
            adam.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                loss = compiled(ids, following)
            loss.backward()
            adam.step()

        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        seconds = torch_seconds(step, 6, 4)
        report(f"GPT-2 124M step, {name}", "PyTorch compile", seconds, ids.numel() / seconds, "tokens/s")
        peak = torch.cuda.max_memory_allocated() / 2**20
        print(f"  first step after {first:.1f} s, at most {peak:,.0f} MiB", flush=True)
        del model, compiled, adam, step


def resnets():
    """Training steps of BenchmarkResNets: SGD with momentum, channels last."""
    import torch
    import torchvision

    torch.backends.cudnn.benchmark = True
    batch, size = 64, 224
    for name in ("resnet18", "resnet50"):
        for precision in ("bf16", "tf32", "f32"):
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
            model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
            compiled = torch.compile(model)
            sgd = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)
            x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
            labels = torch.randint(0, 1000, (batch,), device="cuda")

            def step():
                sgd.zero_grad(set_to_none=True)
                with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
                    loss = torch.nn.functional.cross_entropy(compiled(x), labels)
                loss.backward()
                sgd.step()

            seconds = torch_seconds(step, 6, 6)
            report(f"{name} step, batch {batch}, {precision}", "PyTorch compile", seconds, batch / seconds, "images/s")
            del model, compiled, sgd, step


JOBS = {job.__name__: job for job in (matmul, rows, matrices, fourier, mlp, cnn, attention, gpt2, resnets)}

if __name__ == "__main__":
    if len(sys.argv) == 2:
        JOBS[sys.argv[1]]()
    else:
        for name in sys.argv[1:] or JOBS:
            subprocess.run([sys.executable, __file__, name], check=False)
