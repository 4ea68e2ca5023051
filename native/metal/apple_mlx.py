"""The jobs of BenchmarkGPU in MLX (https://github.com/ml-explore/mlx), for apple.sh."""

import time
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim


def measure(name, unit, work, step):
    """Prints the rate of a step that returns what is to be evaluated."""
    for _ in range(3):
        mx.eval(step())
    runs, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 1:
        for _ in range(8):
            last = step()
            mx.async_eval(last)
        mx.eval(last)
        runs += 8
    print(f"{name:30} {work * runs / (time.perf_counter() - begin):12.1f} {unit}")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in ((784, 512), (512, 512), (512, 10))]

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = nn.relu(layer(x))
        return self.layers[-1](x)


def mlp(batch):
    """An Adam step of a network 784-512-512-10, compiled."""
    model, optimizer = MLP(), optim.Adam(learning_rate=1e-3)
    x, labels = mx.random.normal((batch, 784)), mx.zeros((batch,), dtype=mx.int32)
    state = [model.state, optimizer.state]
    gradients_of = nn.value_and_grad(model, lambda: nn.losses.cross_entropy(model(x), labels, reduction="mean"))

    @partial(mx.compile, inputs=state, outputs=state)
    def update():
        loss, gradients = gradients_of()
        optimizer.update(model, gradients)
        return loss

    return lambda: [update(), state]


def main():
    print(f"MLX {mx.__version__} on {mx.default_device()}")
    for n in (1024, 4096):
        a, b = mx.random.normal((n, n)), mx.random.normal((n, n))
        measure(f"matmul {n}", "GFLOP/s", 2 * n**3 / 1e9, lambda a=a, b=b: a @ b)
    a, b = mx.random.normal((4096, 4096)).astype(mx.float16), mx.random.normal((4096, 4096)).astype(mx.float16)
    measure("matmul 4096, f16", "GFLOP/s", 2 * 4096**3 / 1e9, lambda: a @ b)
    q, k, v = (mx.random.normal((1, 16, 2048, 64)) for _ in range(3))
    attention = partial(mx.fast.scaled_dot_product_attention, q, k, v, scale=1 / 8, mask="causal")
    measure("attention 16x2048x64, causal", "GFLOP/s", 2 * 16 * 2048**2 * 64 / 1e9, attention)
    x = mx.random.normal((4096, 4096))
    measure("softmax 4096x4096", "GB/s", 8 * 4096 * 4096 / 1e9, lambda: mx.softmax(x, axis=1))
    measure("gelu 4096x4096", "GB/s", 8 * 4096 * 4096 / 1e9, lambda: nn.gelu(x))
    for batch in (128, 4096):
        measure(f"MLP step, batch {batch}", "steps/s", 1, mlp(batch))


if __name__ == "__main__":
    main()
