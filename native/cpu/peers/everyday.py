"""The jobs of BenchmarkEveryday of package native/cpu, in PyTorch; as singles.py.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Everyday ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

F32, F64, F16, BF, C64 = torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64
I8, U8, I32, I64 = torch.int8, torch.uint8, torch.int32, torch.int64


def numbers(dtype, *dims):
    if dtype.is_floating_point or dtype.is_complex:
        return (torch.rand(*dims, dtype=F64) - 0.5).to(dtype)
    return torch.randint(100, dims).to(dtype)


def on(f, *shapes, dtype=F32):
    """A job of an op on inputs of these shapes."""

    def job():
        inputs = [numbers(dtype, *s) for s in shapes]

        def run():
            with torch.inference_mode():
                f(*inputs)

        return run

    return job


def one(f, *dims, dtype=F32):
    return on(f, dims, dtype=dtype)


def chosen(dtype, rows, width):
    def job():
        x, at = numbers(dtype, rows, width), torch.randint(rows, (1 << 16,))
        return on(lambda: x[at])()

    return job


def along():
    x, at = numbers(F32, 2000, 500), torch.randint(2000, (2000, 500))
    return on(lambda: x.gather(0, at))()


def column():
    x, y, c = numbers(BF, 2048, 1024), numbers(BF, 2048, 1024), torch.rand(2048, 1) < 0.5
    return on(lambda: torch.where(c, x, y))()


def images(f, batch, channels, size, dtype=F32):
    """A job on images with the channels last in memory."""

    def job():
        x = numbers(dtype, batch, channels, size, size).to(memory_format=torch.channels_last)
        return on(lambda: f(x))()

    return job


def matrices(f, batch, n, dtype=F32):
    """A job on symmetric matrices with a dominant diagonal."""

    def job():
        x = torch.rand(batch, n, n, dtype=dtype) / 2 + torch.eye(n, dtype=dtype) * n
        x = (x + x.mT) / 2
        return on(lambda: f(x))()

    return job


def normed(f, *dims, dtype=F32, channels=None):
    def job():
        s, b = numbers(dtype, channels or dims[-1]), numbers(dtype, channels or dims[-1])
        x = numbers(dtype, *dims)
        if len(dims) == 4:
            x = x.to(memory_format=torch.channels_last)
        return on(lambda: f(x, s, b))()

    return job


def layer(x, s, b):
    return F.layer_norm(x, s.shape, s, b)


def nearest(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


def linear(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def permuted(*axes):
    return lambda x: x.permute(*axes).contiguous()


def einsum(equation, a, b):
    return {"einsum " + equation: on(lambda x, y: torch.einsum(equation, x, y), a, b)}


M = 1 << 20
JOBS = {
    "clip 4M": one(lambda x: x.clamp(-0.1, 0.1), 4 * M),
    "where of a comparison 4M": on(lambda x, y: torch.where(x > y, x, 0.0), (4 * M,), (4 * M,)),
    "where of a column bf16 2048x1024": column,
    "argmax 2 of 64x128x256": one(lambda x: x.argmax(2), 64, 128, 256),
    "argmax bf16 1 of 2000x1000": one(lambda x: x.argmax(1), 2000, 1000, dtype=BF),
    "argmax i32 0 of 2000x1000": one(lambda x: x.argmax(0), 2000, 1000, dtype=I32),
    "take 65536 rows of 4096x256 bf16": chosen(BF, 4096, 256), "take 65536 rows of 4096x64 f64": chosen(F64, 4096, 64),
    "take along 0 of 2000x500": along,
    "pad bf16 16x64x64x32": one(lambda x: F.pad(x, (0, 0, 1, 1, 1, 1)), 16, 64, 64, 32, dtype=BF),
    "pad f64 2000x500": one(lambda x: F.pad(x, (3, 3)), 2000, 500, dtype=F64),
    "roll 0 f64 2000x500": one(lambda x: x.roll(3, 0), 2000, 500, dtype=F64), "roll 1 bf16 2000x500": one(lambda x: x.roll(3, 1), 2000, 500, dtype=BF),
    "flip 1 f64 1000x1000": one(lambda x: x.flip(1), 1000, 1000, dtype=F64), "flip 1 i64 1000x1000": one(lambda x: x.flip(1), 1000, 1000, dtype=I64),
    "flip 1 u8 1000x3000": one(lambda x: x.flip(1), 1000, 3000, dtype=U8),
    "concatenate last bf16 8192x96": on(lambda x, y: torch.cat([x, y], 1), (8192, 96), (8192, 32), dtype=BF),
    "concatenate last f64 20000x17": on(lambda x, y: torch.cat([x, y], 1), (20000, 17), (20000, 15), dtype=F64),
    "transpose 0 2 1 f32 32x256x384": one(permuted(0, 2, 1), 32, 256, 384), "transpose 0 2 1 bf16 32x256x384": one(permuted(0, 2, 1), 32, 256, 384, dtype=BF),
    "transpose 0 2 1 f64 16x256x384": one(permuted(0, 2, 1), 16, 256, 384, dtype=F64), "transpose 0 2 1 i8 32x256x384": one(permuted(0, 2, 1), 32, 256, 384, dtype=I8),
    "transpose 0 3 1 2 f32 8x56x56x64": one(permuted(0, 3, 1, 2), 8, 56, 56, 64), "transpose 0 3 1 2 bf16 8x56x56x64": one(permuted(0, 3, 1, 2), 8, 56, 56, 64, dtype=BF),
    "transpose 0 3 1 2 u8 8x224x224x3": one(permuted(0, 3, 1, 2), 8, 224, 224, 3, dtype=U8), "transpose 0 2 1 3 f64 8x128x8x64": one(permuted(0, 2, 1, 3), 8, 128, 8, 64, dtype=F64),
    "repeat 1 bf16 2000x500": one(lambda x: x.repeat_interleave(2, 1), 2000, 500, dtype=BF), "repeat 0 f32 2000x500": one(lambda x: x.repeat_interleave(4, 0), 2000, 500),
    "tile 1x3 f32 2000x501": one(lambda x: x.repeat(1, 3), 2000, 501),
    "cumsum 0 f64 2000x500": one(lambda x: x.cumsum(0), 2000, 500, dtype=F64), "cumsum 1 i64 2000x500": one(lambda x: x.cumsum(1), 2000, 500, dtype=I64),
    "cummax 1 f32 1000x1000": one(lambda x: x.cummax(1), 1000, 1000), "cumprod 0 f32 1000x1000": one(lambda x: x.cumprod(0), 1000, 1000),
    "log sum exp bf16 4096x1000": one(lambda x: x.logsumexp(1), 4096, 1000, dtype=BF), "variance 0 f64 5000x200": one(lambda x: x.var(0, correction=0), 5000, 200, dtype=F64),
    "norm of 4M": one(torch.linalg.vector_norm, 4 * M), "norm 1 of 100000x16": one(lambda x: torch.linalg.vector_norm(x, dim=1), 100_000, 16),
    "softmax bf16 4096x1000": one(lambda x: x.softmax(1), 4096, 1000, dtype=BF), "softmax f64 1000x1000": one(lambda x: x.softmax(1), 1000, 1000, dtype=F64),
    "sort 1 of 1000x1000": one(lambda x: x.sort(dim=1, stable=True), 1000, 1000), "sort i64 1 of 1000x1000": one(lambda x: x.sort(dim=1, stable=True), 1000, 1000, dtype=I64),
    "top 50 of 1000x1000": one(lambda x: x.topk(50, 1), 1000, 1000),
    "unique of 200000": one(lambda x: (x * 2000).abs().to(I32).unique(), 200_000),
    "max pool 2x2 of 8x112x112x32": images(lambda x: F.max_pool2d(x, 2), 8, 32, 112),
    "average pool 3x3 stride 2 of 8x112x112x32": images(lambda x: F.avg_pool2d(x, 3, 2), 8, 32, 112),
    "nearest 2 of 4x64x64x64": images(nearest, 4, 64, 64), "nearest 2 bf16 of 4x64x64x32": images(nearest, 4, 32, 64, BF),
    "linear 2 of 4x64x64x64": images(linear, 4, 64, 64), "linear 2 of 4x64x64x3": images(linear, 4, 3, 64), "linear 2 f64 of 4x64x64x16": images(linear, 4, 16, 64, F64),
    "group norm 16x32x32x64": normed(lambda x, s, b: F.group_norm(x, 8, s, b), 16, 64, 32, 32, channels=64),
    "layer norm 4095x777": normed(layer, 4095, 777), "layer norm bf16 2048x768": normed(layer, 2048, 768, dtype=BF),
    "conv1d ncw 5 of 16x32x2000": on(lambda x, w: F.conv1d(x, w, padding=2), (16, 32, 2000), (64, 32, 5)),
    "outer 2000x2000": on(torch.outer, (2000,), (2000,)),
    "matmul 512 of 16x16": on(torch.matmul, (512, 16, 16), (512, 16, 16)), "matmul f64 2000 of 8x8": on(torch.matmul, (2000, 8, 8), (2000, 8, 8), dtype=F64),
    "matmul 10000 of 3x3": on(torch.matmul, (10000, 3, 3), (10000, 3, 3)), "matmul 100000 of 4x4 by vectors": on(torch.matmul, (100000, 4, 4), (100000, 4, 1)),
    "inverse 10000 of 3": matrices(torch.linalg.inv, 10000, 3), "det 10000 of 3": matrices(torch.linalg.det, 10000, 3),
    "lu 1000 of 8": matrices(torch.linalg.lu_factor, 1000, 8), "cholesky 1000 of 8": matrices(torch.linalg.cholesky, 1000, 8), "eigh 1000 of 3": matrices(torch.linalg.eigh, 1000, 3),
    "inverse f64 1000 of 4": matrices(torch.linalg.inv, 1000, 4, F64),
    "sum all i32 2000x2000": one(lambda x: x.sum(dtype=I32), 2000, 2000, dtype=I32), "sum 0 i64 1000x1000": one(lambda x: x.sum(0), 1000, 1000, dtype=I64),
    "sum 1 u8 1000x3000": one(lambda x: x.sum(1, dtype=U8), 1000, 3000, dtype=U8), "sum 1 bf16 2000x2000": one(lambda x: x.sum(1), 2000, 2000, dtype=BF),
    "max 1 bf16 2000x2000": one(lambda x: x.amax(1), 2000, 2000, dtype=BF), "sum 0 bf16 2000x2000": one(lambda x: x.sum(0), 2000, 2000, dtype=BF),
    "equal bf16 2M": on(torch.eq, (2 * M,), (2 * M,), dtype=BF), "less f64 1M": on(torch.lt, (M,), (M,), dtype=F64),
    "f64 to f32 2M": one(lambda x: x.to(F32), 2 * M, dtype=F64), "bf16 to f32 2M": one(lambda x: x.to(F32), 2 * M, dtype=BF), "i64 to f32 1M": one(lambda x: x.to(F32), M, dtype=I64),
    "f16 to f32 2M": one(lambda x: x.to(F32), 2 * M, dtype=F16), "u8 to f32 4M": one(lambda x: x.to(F32), 4 * M, dtype=U8), "f32 to f16 2M": one(lambda x: x.to(F16), 2 * M),
    "f32 to bool 2M": one(lambda x: x.to(torch.bool), 2 * M),
    "erf 4M": one(torch.erf, 4 * M), "erfinv 1M": one(torch.erfinv, M), "erfinv f64 200k": one(torch.erfinv, 200_000, dtype=F64),
    "log1p 4M": one(torch.log1p, 4 * M), "expm1 4M": one(torch.expm1, 4 * M),
    "gelu bf16 4M": one(F.gelu, 4 * M, dtype=BF), "silu bf16 4M": one(F.silu, 4 * M, dtype=BF), "tanh f16 2M": one(torch.tanh, 2 * M, dtype=F16),
    "atan2 2M": on(torch.atan2, (2 * M,), (2 * M,)), "fmod 2M": on(torch.fmod, (2 * M,), (2 * M,)),
    "square 4M": one(lambda x: x**2, 4 * M), "power 0.75 1M": one(lambda x: x.abs() ** 0.75, M),
    "mul c64 1M": on(torch.mul, (M,), (M,), dtype=C64),
    "fft 256x1024": one(torch.fft.fft, 256, 1024, dtype=C64), "rfft 256x1024": one(torch.fft.rfft, 256, 1024),
    "mean squared error 2M": on(F.mse_loss, (2 * M,), (2 * M,)), "cosine similarity 10000x128": on(F.cosine_similarity, (10000, 128), (10000, 128)),
    "tril f32 2000x2000": one(torch.tril, 2000, 2000), "pixel shuffle 2 of 4x64x64x64": images(lambda x: F.pixel_shuffle(x, 2), 4, 64, 64),
    **einsum("bij,bjk->ik", (64, 100, 50), (64, 50, 80)), **einsum("bnhd,bmhd->bhnm", (2, 256, 8, 64), (2, 256, 8, 64)),
}

serve(JOBS)
