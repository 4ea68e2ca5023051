"""The jobs of BenchmarkSingles of package native/cpu, in PyTorch. Reads the name of a job a line
and writes the least time of its runs in ms, 0 for one that it does not know. The benchmark starts
it; nothing else of rlx needs Python.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Singles ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)


def of(f, *dims, dtype=torch.float32):
    """A job of one op on an input."""

    def job():
        x = torch.rand(*dims) - 0.5
        x = x.to(dtype)

        def run():
            with torch.inference_mode():
                f(x)

        return run

    return job


def dominant(f, n, *batch, dtype=torch.float32):
    """A job on symmetric matrices with a dominant diagonal."""

    def job():
        x = torch.rand(*batch, n, n, dtype=dtype) / 2 + torch.eye(n, dtype=dtype) * n
        x = (x + x.mT) / 2
        return lambda: f(x)

    return job


def svd(x):
    return torch.linalg.svd(x, full_matrices=False)


def images(f, batch, size, channels, weight):
    """A job on images with the channels last in memory, and a weight."""

    def job():
        x = torch.rand(batch, channels, size, size).to(memory_format=torch.channels_last)
        w = torch.rand(*weight).to(memory_format=torch.channels_last) if weight else None

        def run():
            with torch.inference_mode():
                f(x, w)

        return run

    return job


def take():
    ids = torch.arange(100_000) % 10_000
    return of(lambda x: x[ids], 10_000, 64)()


def scatter():
    ids, u = torch.arange(100_000) % 10_000, torch.rand(100_000, 64)
    return of(lambda x: x.index_add(0, ids, u), 10_000, 64)()


def embedding():
    x, ids = torch.rand(20_000, 64, requires_grad=True), torch.randint(20_000, (4096,))

    def run():
        x.grad = None
        F.embedding(ids, x).square().sum().backward()

    return run


def summed(*axes):
    return of(lambda x: x.sum(axes), 64, 64, 64, 16)


def permuted(*axes):
    return of(lambda x: x.permute(axes).contiguous(), 64, 32, 48, 20)


def added():
    z = torch.rand(1 << 20).to(torch.bfloat16)
    return of(lambda x: x + z, 1 << 20, dtype=torch.bfloat16)()


def joined(parts, *dims):
    rest = [torch.rand(*dims) for _ in range(parts - 1)]
    return of(lambda x: torch.cat([x, *rest], 1), *dims)


JOBS = {
    "sort 32x4096": of(lambda x: x.sort(1), 32, 4096),
    "sort 4096x32 axis 0": of(lambda x: x.sort(0), 4096, 32),
    "sort 1M": of(lambda x: x.sort(), 1 << 20),
    "sort i32 1M": of(lambda x: (x * 1e9).int().sort(), 1 << 20),
    "argsort 1M": of(lambda x: x.argsort(), 1 << 20),
    "topk 32 of 32x4096": of(lambda x: x.topk(32, 1), 32, 4096),
    "cumsum 1024x1024 axis 0": of(lambda x: x.cumsum(0), 1024, 1024),
    "cumsum 1024x1024 axis 1": of(lambda x: x.cumsum(1), 1024, 1024),
    "cumsum 64x128x128 axis 1": of(lambda x: x.cumsum(1), 64, 128, 128),
    "cumprod 1024x1024 axis 1": of(lambda x: x.cumprod(1), 1024, 1024),
    "cholesky 512": dominant(torch.linalg.cholesky, 512),
    "cholesky 1024": dominant(torch.linalg.cholesky, 1024),
    "lu 512": dominant(torch.linalg.lu_factor, 512),
    "solve 512": dominant(lambda x: torch.linalg.solve(x, x), 512),
    "qr 256": dominant(torch.linalg.qr, 256),
    "qr 1024": dominant(torch.linalg.qr, 1024),
    "qr 1000x50": of(torch.linalg.qr, 1000, 50),
    "qr 64 of 32": dominant(torch.linalg.qr, 32, 64),
    "eigh 64": dominant(torch.linalg.eigh, 64),
    "eigh 256": dominant(torch.linalg.eigh, 256),
    "eigh 1024": dominant(torch.linalg.eigh, 1024),
    "eigh 64 of 32": dominant(torch.linalg.eigh, 32, 64),
    "eigenvalues 256": dominant(torch.linalg.eigvalsh, 256),
    "svd 64": dominant(svd, 64),
    "svd 256": dominant(svd, 256),
    "svd 512x64": of(svd, 512, 64),
    "svd 64 of 32": dominant(svd, 32, 64),
    "singular values 256": dominant(torch.linalg.svdvals, 256),
    "inverse 256": dominant(torch.linalg.inv, 256),
    "inverse 64 of 32": dominant(torch.linalg.inv, 32, 64),
    "det 256": dominant(torch.linalg.det, 256),
    "det 64 of 32": dominant(torch.linalg.det, 32, 64),
    "cholesky 64": dominant(torch.linalg.cholesky, 64),
    "cholesky 2048": dominant(torch.linalg.cholesky, 2048),
    "cholesky 64 of 32": dominant(torch.linalg.cholesky, 32, 64),
    "lu 64": dominant(torch.linalg.lu_factor, 64),
    "lu 2048": dominant(torch.linalg.lu_factor, 2048),
    "lu 64 of 32": dominant(torch.linalg.lu_factor, 32, 64),
    "solve 64": dominant(lambda x: torch.linalg.solve(x, x), 64),
    "solve 64 of 32": dominant(lambda x: torch.linalg.solve(x, x), 32, 64),
    "fft 64x4096": of(torch.fft.fft, 64, 4096, dtype=torch.complex64),
    "fft 512x512 axes 0 1": of(torch.fft.fft2, 512, 512, dtype=torch.complex64),
    "take 100k of 10000x64": take,
    "add 100k to 10000x64": scatter,
    "gradient of embedding 20000x64": embedding,
    "conv 3x3 dilated 2, 32": images(lambda x, w: F.conv2d(x, w, padding=2, dilation=2), 8, 32, 32, (32, 32, 3, 3)),
    "conv 3x3 in 8 groups, 64": images(lambda x, w: F.conv2d(x, w, padding=1, groups=8), 8, 32, 64, (64, 8, 3, 3)),
    "conv 5x5 stride 2, 24, batch 1": images(lambda x, w: F.conv2d(x, w, stride=2, padding=2), 1, 65, 24, (40, 24, 5, 5)),
    "conv 1x1 stride 2, 64": images(lambda x, w: F.conv2d(x, w, stride=2), 8, 32, 64, (128, 64, 1, 1)),
    "conv 3x3 depthwise stride 2, 96": images(lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=96), 4, 33, 96, (96, 1, 3, 3)),
    "conv transposed 4x4 stride 2, 32": images(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), 8, 16, 32, (32, 32, 4, 4)),
    "max pool 3x3 stride 2": images(lambda x, w: F.max_pool2d(x, 3, 2, 1), 8, 64, 32, None),
    "average pool 2x2": images(lambda x, w: F.avg_pool2d(x, 2), 8, 64, 32, None),
    "softmax 32x256x64 axis 1": of(lambda x: x.softmax(1), 32, 256, 64),
    "softmax 512x1024 axis 0": of(lambda x: x.softmax(0), 512, 1024),
    "softmax 4096x50": of(lambda x: x.softmax(1), 4096, 50),
    "sum axes 0 2": summed(0, 2), "sum axes 1 3": summed(1, 3), "sum axes 0 3": summed(0, 3), "sum axes 1 2": summed(1, 2), "sum axis 3": summed(3),
    "transpose 0 2 1 3": permuted(0, 2, 1, 3), "transpose 3 0 1 2": permuted(3, 0, 1, 2), "transpose 2 1 0 3": permuted(2, 1, 0, 3),
    "transpose 0 3 2 1": permuted(0, 3, 2, 1),
    "pad 32x64x64x16": of(lambda x: F.pad(x, (0, 0, 1, 1, 1, 1)), 32, 64, 64, 16),
    "concatenate 4 of 1024x256 axis 1": joined(4, 1024, 256),
    "concatenate 2 of 4096x33 axis 1": joined(2, 4096, 33),
    "random bits 1M": of(lambda x: torch.randint(1 << 31, (1 << 20,), dtype=torch.int32), 2),
    "add bf16 1M": added,
    "gelu f16 1M": of(lambda x: F.gelu(x, approximate="tanh"), 1 << 20, dtype=torch.float16),
    "matmul bf16 512": of(lambda x: x @ x, 512, 512, dtype=torch.bfloat16),
    "matmul f16 512": of(lambda x: x @ x, 512, 512, dtype=torch.float16),
}


if __name__ == "__main__":
    serve(JOBS)
