"""The jobs of BenchmarkMaps of package native/cpu, in PyTorch; as singles.py.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Maps ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

from singles import images, of

N = 1 << 18
C64, C128, F64 = torch.complex64, torch.complex128, torch.float64


def pair(f, x, y, dtype=torch.float32):
    """A job of one op on two inputs."""

    def job():
        a, b = (torch.rand(*dims, dtype=torch.float64) - 0.5 for dims in (x, y))
        a, b = a.to(dtype), b.to(dtype)

        def run():
            with torch.inference_mode():
                f(a, b)

        return run

    return job


def argmax_i64():
    x = torch.randint(1 << 20, (1000, 500))
    return lambda: x.argmax(1)


def reflected(batch, channels, gradient=False):
    def job():
        x = torch.rand(batch, channels, 64, 64).to(memory_format=torch.channels_last if channels > 1 else torch.contiguous_format)
        x.requires_grad_(gradient)

        def run():
            x.grad = None
            y = F.pad(x, (3, 3, 3, 3), mode="reflect")
            if gradient:
                (y * y).sum().mul(0.5).backward()

        return run

    return job


def grid_sample():
    x = torch.rand(4, 32, 64, 64).to(memory_format=torch.channels_last)
    grid = torch.rand(4, 64, 64, 2) - 0.5
    return lambda: F.grid_sample(x, grid, align_corners=False)


def bags():
    x, ids = torch.rand(20_000, 64), torch.randint(20_000, (4096, 8))
    return lambda: F.embedding_bag(ids, x, mode="sum")


def inverse(n, *batch):
    return of(lambda x: torch.linalg.inv(x + torch.eye(n) * n), *batch, n, n)


MAPS = {
    "c64 add": pair(torch.add, (N,), (N,), C64),
    "c64 multiply": pair(torch.mul, (N,), (N,), C64),
    "c64 divide": pair(torch.div, (N,), (N,), C64),
    "c128 multiply": pair(torch.mul, (N,), (N,), C128),
    "c64 exp": of(torch.exp, N, dtype=C64),
    "c64 abs": of(torch.abs, N, dtype=C64),
    "c64 conjugate": of(torch.conj_physical, N, dtype=C64),
    "c64 sum of 512x512 axis 1": of(lambda x: x.sum(1), 512, 512, dtype=C64),
    "c64 sum of 512x512 axis 0": of(lambda x: x.sum(0), 512, 512, dtype=C64),
    "c64 matmul 200": pair(torch.matmul, (200, 200), (200, 200), C64),
    "c64 matmul 16 of 64x64": pair(torch.matmul, (16, 64, 64), (16, 64, 64), C64),
    "f64 pow": pair(lambda x, y: torch.pow(torch.abs(x), y), (N,), (N,), F64),
    "f64 sin": of(torch.sin, N, dtype=F64),
    "f64 exp": of(torch.exp, N, dtype=F64),
    "f64 log": of(lambda x: torch.log(torch.abs(x)), N, dtype=F64),
    "f64 tanh": of(torch.tanh, N, dtype=F64),
    "f64 argmax 1000x500": of(lambda x: x.argmax(1), 1000, 500, dtype=F64),
    "i64 argmax 1000x500": argmax_i64,
    "pad reflect 8x64x64x16": reflected(8, 16),
    "pad reflect planes 16x64x64": reflected(128, 1),
    "gradient of pad reflect 8x64x64x16": reflected(8, 16, gradient=True),
    "grid sample 4x64x64x32": grid_sample,
    "embedding bags 4096 of 8, 64": bags,
    "sum of every fourth of 1000x1000": of(lambda x: x[:, ::4].sum(1), 1000, 1000),
    "bf16 sum 1000x1000": of(lambda x: x.sum(1), 1000, 1000, dtype=torch.bfloat16),
    "f16 sum 1000x1000": of(lambda x: x.sum(1), 1000, 1000, dtype=torch.float16),
    "f64 sum 1000x1000": of(lambda x: x.sum(1), 1000, 1000, dtype=F64),
    "bf16 max 1000x1000": of(lambda x: x.amax(1), 1000, 1000, dtype=torch.bfloat16),
    "inverse 1000 of 3": inverse(3, 1000),
    "inverse 64 of 32": inverse(32, 64),
    "conv 3x3 in 4 groups, 64": images(lambda x, w: F.conv2d(x, w, padding=1, groups=4), 8, 32, 64, (64, 16, 3, 3)),
    "conv 3x3 in 32 groups, 128": images(lambda x, w: F.conv2d(x, w, padding=1, groups=32), 8, 28, 128, (128, 4, 3, 3)),
    "rfft 64x4096": of(torch.fft.rfft, 64, 4096),
    "rfft 1000x512": of(torch.fft.rfft, 1000, 512),
    "irfft 1000x512": of(lambda x: torch.fft.irfft(x, 512), 1000, 257, dtype=C64),
}

serve(MAPS)
