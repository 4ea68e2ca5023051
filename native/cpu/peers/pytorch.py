"""The CPU benchmarks of package native/cpu, in PyTorch: the same sizes, random
data, and one warm-up. Prints one row for each, or one line where PyTorch is not
installed; nothing else of rlx needs Python.

    python3 native/cpu/peers/pytorch.py [THREADS]
"""
import sys
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed: no peer on the CPU")
    sys.exit(0)

if len(sys.argv) > 1:
    torch.set_num_threads(int(sys.argv[1]))


def median_seconds(run, times=7):
    run()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[times // 2]


def row(name, seconds, rate):
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads  {name:34} {seconds * 1e6:12.1f} us  {rate}")


def sgemm(n):
    a, b, c = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
    seconds = median_seconds(lambda: torch.mm(a, b, out=c))
    row(f"sgemm {n}", seconds, f"{2 * n**3 / seconds / 1e9:.1f} GFLOP/s")


def mlp(layers, batch):
    """One Adam step of a ReLU network on cross-entropy."""
    modules = []
    for i, (inputs, outputs) in enumerate(zip(layers, layers[1:])):
        modules += [torch.nn.Linear(inputs, outputs)] + ([torch.nn.ReLU()] if i < len(layers) - 2 else [])
    model = torch.nn.Sequential(*modules)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    loss_of = torch.nn.CrossEntropyLoss()
    x, labels = torch.randn(batch, layers[0]), torch.randint(layers[-1], (batch,))

    def step():
        optimizer.zero_grad()
        loss_of(model(x), labels).backward()
        optimizer.step()

    seconds = median_seconds(lambda: [step() for _ in range(10)]) / 10
    row(f"mlp {'-'.join(map(str, layers))} batch {batch}", seconds, f"{1 / seconds:.0f} steps/s")


for size in (64, 256, 512, 1024):
    sgemm(size)
mlp([784, 512, 512, 10], 128)
mlp([64, 64, 10], 128)
