"""The jobs of BenchmarkWide of package native/cpu, in PyTorch; as singles.py. The name of a job is
a function, perhaps with an axis, a type and a size.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Wide -benchtime=1x ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i32": torch.int32, "i64": torch.int64}
ACTIVATIONS = {"gelu", "silu", "softplus", "relu", "mish", "logsigmoid"}
BINARY = {"add", "mul", "div", "pow", "atan2", "maximum", "fmod", "remainder", "floor_divide", "hypot", "logaddexp", "lt", "bitwise_and"}


def scattered(x):
    return torch.arange(x.shape[-1]) * 7 % x.shape[-1]


def images(x):
    """Images of 16 channels, the last axis in memory."""
    n = x.shape[-1]
    return x.reshape(1, n // 4, n // 4, 16).permute(0, 3, 1, 2)


def resized(mode):
    return lambda x: F.interpolate(images(x), scale_factor=2, mode=mode)


ROWS = {
    "sum all": lambda x: x.sum(), "amax all": lambda x: x.amax(), "transpose": lambda x: x.T.contiguous(),
    "sort 0": lambda x: x.sort(dim=0, stable=True), "sort 1": lambda x: x.sort(dim=1, stable=True), "argsort 1": lambda x: x.argsort(dim=1, stable=True),
    "topk 1": lambda x: x.topk(10, 1), "flip 1": lambda x: x.flip(1), "roll 1": lambda x: x.roll(3, 1), "tril": lambda x: x.tril(),
    "cat 1": lambda x: torch.cat([x, x], 1), "repeat 1": lambda x: x.repeat_interleave(2, 1),
    "index_select 0": lambda x: x.index_select(0, scattered(x)), "index_select 1": lambda x: x.index_select(1, scattered(x)),
    "gather 1": lambda x: x.gather(1, scattered(x).expand(x.shape)), "index_add 0": lambda x: x.index_add(0, scattered(x), x),
    "where": lambda x: torch.where(x < x.T, x, 1), "norm 1": lambda x: torch.linalg.vector_norm(x, 2, 1), "median 1": lambda x: x.quantile(0.5, 1) if x.dtype in (torch.float32, torch.float64) and x.numel() < 1 << 24 else x.median(1),
    "max_pool": lambda x: F.max_pool2d(images(x), 3, 2, 1), "avg_pool": lambda x: F.avg_pool2d(images(x), 3, 1, 1),
    "nearest": resized("nearest-exact"), "bilinear": resized("bilinear"), "bicubic": resized("bicubic"),
}
PRODUCTS = {
    "matmul": lambda x: x @ x, "cholesky": torch.linalg.cholesky, "lu": lambda x: torch.linalg.lu_factor(x), "qr": torch.linalg.qr,
    "eigh": torch.linalg.eigh, "svd": lambda x: torch.linalg.svd(x, full_matrices=False), "solve": lambda x: torch.linalg.solve(x, x),
    "inv": torch.linalg.inv, "det": torch.linalg.det,
    "solve_triangular": lambda x: torch.linalg.solve_triangular(x, x, upper=False),
}


def numbers(dtype, *shape):
    if dtype.is_floating_point:
        return (torch.rand(*shape) - 0.5).to(dtype)
    return torch.randint(-1000, 1000, shape, dtype=dtype)


def job(name):
    """The job of a name, as a function without arguments."""
    *words, dtype, size = name.split()
    dtype, size = TYPES[dtype], int(size)
    if words[0] in PRODUCTS:
        n = int(words[1])
        x = numbers(dtype, size, n, n)
        if words[0] != "matmul":
            x = (x + x.mT) / 2 + torch.eye(n, dtype=dtype) * n
        f = PRODUCTS[words[0]]
        return lambda: f(x)
    op = " ".join(words)
    side = round(size**0.5)
    if op in ROWS:
        f, x = ROWS[op], numbers(dtype, side, side)
        return lambda: f(x)
    if op == "broadcast add":
        x, y = numbers(dtype, side, side), numbers(dtype, side)
        return lambda: x + y
    if len(words) == 2:
        x, axis, f = numbers(dtype, side, side), int(words[1]), getattr(torch, words[0])
        return lambda: f(x, axis)
    if op in BINARY:
        x, y, f = numbers(dtype, size), numbers(dtype, size), getattr(torch, op)
        if not dtype.is_floating_point:
            y += y == 0
        return lambda: f(x, y)
    x, f = numbers(dtype, size), getattr(F if op in ACTIVATIONS else torch, op)
    return lambda: f(x)


class Jobs:
    """Jobs by their names; none for a name that PyTorch has no function for."""

    def get(self, name):
        run = job(name)

        def inference():
            with torch.inference_mode():
                run()

        try:
            inference()
        except (RuntimeError, TypeError):
            return None
        return lambda: inference


if __name__ == "__main__":
    serve(Jobs())
