"""The jobs of BenchmarkShapes of package native/cpu, in PyTorch; as singles.py.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Shapes ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

from singles import of


def conv(batch, h, w, cin, out, groups, kernel, strides, dilations, planes, gradient):
    def job():
        form = torch.contiguous_format if planes else torch.channels_last
        x = torch.rand(batch, cin, h, w).to(memory_format=form)
        k = torch.rand(out, cin // groups, *kernel).to(memory_format=form)
        pad = [(kernel[i] - 1) // 2 * dilations[i] for i in (0, 1)]

        def run():
            with torch.inference_mode():
                F.conv2d(x, k, None, strides, pad, dilations, groups)

        if not gradient:
            return run
        x.requires_grad_(), k.requires_grad_()

        def both():
            x.grad = k.grad = None
            F.conv2d(x, k, None, strides, pad, dilations, groups).square().sum().backward()

        return both

    return job


def conv1d(stride):
    def job():
        x, k = torch.rand(8, 30, 1000), torch.rand(40, 30, 9)
        return lambda: F.conv1d(x, k, stride=stride, padding=4)

    return job


def mm(t, batch, m, n, k, transposed):
    def job():
        if t == torch.int32:
            x, y = torch.randint(100, (batch, m, k), dtype=t), torch.randint(100, (batch, k, n), dtype=t)
        else:
            x, y = torch.rand(batch, m, k).to(t), torch.rand(batch, k, n).to(t)
        if transposed:
            y = y.mT.contiguous().mT
        if batch == 1:
            x, y = x[0], y[0]

        def run():
            with torch.inference_mode():
                x @ y

        return run

    return job


def two(f, a, b, dtype=torch.float32):
    def job():
        z = (torch.rand(*b) * (1 if dtype.is_floating_point else 1000)).to(dtype) + (0 if dtype.is_floating_point else 1)
        return of(lambda x: f(x, z), *a, dtype=dtype)()

    return job


def ints(f, *dims):
    def job():
        x = torch.randint(1000, dims, dtype=torch.int32)
        return lambda: f(x)

    return job


def ids(f, dims, many, below):
    def job():
        x, at = torch.rand(*dims), torch.randint(below, many)
        return lambda: f(x, at)

    return job


def skewed():
    x, at, u = torch.rand(1000, 16), torch.randint(3, (100_000,)), torch.rand(100_000, 16)
    return lambda: x.index_add(0, at, u)


def numbers():
    x, i, u = torch.rand(1000), torch.arange(1 << 20, dtype=torch.int32), torch.rand(1 << 20)
    return lambda: x.index_add(0, i % 1000, u)


def norm(f, *dims):
    def job():
        n = dims[-1]
        s, b = torch.rand(n), torch.rand(n)
        return of(lambda x: f(x, s, b), *dims)()

    return job


def layer(x, s, b):
    return F.layer_norm(x, s.shape, s, b)


def group():
    x, s, b = torch.rand(8, 30, 32, 32).to(memory_format=torch.channels_last), torch.rand(30), torch.rand(30)
    return lambda: F.group_norm(x, 5, s, b)


def lstm():
    n, h = 32, 256
    x, hh, c, w, u, b = torch.rand(n, h), torch.rand(n, h), torch.rand(n, h), torch.rand(h, 4 * h), torch.rand(h, 4 * h), torch.rand(4 * h)

    def step():
        i, f, g, o = (torch.addmm(b, x, w) + hh @ u).chunk(4, 1)
        c2 = i.sigmoid() * c + f.sigmoid() * g.tanh()
        return c2, o.sigmoid() * c2.tanh()

    return lambda: step()


def bools(f, *dims):
    def job():
        x = torch.rand(*dims) < 0.5
        return lambda: f(x)

    return job


def small_ints(f, dtype, *dims):
    def job():
        x = torch.randint(100, dims).to(dtype)
        return lambda: f(x)

    return job


def both(f, dtype, a, b):
    def job():
        def make(dims):
            return torch.rand(*dims) < 0.5 if dtype == torch.bool else (torch.rand(*dims) * 100).to(dtype)

        x, y = make(a), make(b)

        def run():
            with torch.inference_mode():
                f(x, y)

        return run

    return job


def planes():
    x, s, b = torch.rand(8, 24, 33, 33), torch.rand(24), torch.rand(24)
    return lambda: F.group_norm(x, 8, s, b)


def mul64():
    x, y = torch.randint(100, (100, 100)), torch.randint(100, (100, 100))
    return lambda: x @ y


def taken(dims, many, dtype=torch.float32):
    def job():
        x, i = torch.rand(*dims).to(dtype), torch.randint(dims[0], (many,))
        return lambda: x[i]

    return job


def grad(f, *dims):
    def job():
        x = torch.rand(*dims).requires_grad_()

        def run():
            x.grad = None
            f(x).square().sum().mul(0.5).backward()

        return run

    return job


def entropy():
    x, at = torch.rand(512, 1000).requires_grad_(), torch.randint(1000, (512,))

    def run():
        x.grad = None
        F.cross_entropy(x, at).backward()

    return run


def bags():
    x, at = torch.rand(2000, 48), torch.randint(2000, (500, 20))
    return lambda: F.embedding_bag(at, x, mode="sum")


def hot():
    x = torch.randint(100, (10000,))
    return lambda: F.one_hot(x, 100).float()


def where(dims, form):
    def job():
        x, y, c = torch.rand(*dims), torch.rand(*dims), torch.rand(*form) < 0.5
        return (lambda: torch.where(c, x, y)) if dims == form else (lambda: x.masked_fill(c, -1e9))

    return job


def nearest(x):
    return F.interpolate(x, scale_factor=2, mode="nearest")


def channels_last(f, *dims):
    def job():
        x = torch.rand(*dims).to(memory_format=torch.channels_last)
        return lambda: f(x)

    return job


def nearest_grad():
    x = torch.rand(8, 16, 32, 32).to(memory_format=torch.channels_last).requires_grad_()

    def run():
        x.grad = None
        nearest(x).square().sum().mul(0.5).backward()

    return run


def linear(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def linear_grad():
    x = torch.rand(4, 32, 32, 32).to(memory_format=torch.channels_last).requires_grad_()

    def run():
        x.grad = None
        linear(x).square().sum().backward()

    return run


def along():
    i = torch.zeros(1000, 64, dtype=torch.int64)
    return grad(lambda x: x.gather(1, i), 1000, 500)()


def classes():
    x, labels = torch.rand(256, 10000), torch.randint(10000, (256,))

    def run():
        with torch.inference_mode():
            F.cross_entropy(x, labels)

    return run


def hashed(x, scale):
    return (x * scale).abs().to(I)


def triangle(a, b):
    def job():
        x, y = torch.rand(*a) + torch.eye(a[-1]) * a[-1], torch.rand(*b)
        return lambda: torch.linalg.solve_triangular(x, y, upper=False)

    return job


def wide_ints(f, *dims):
    def job():
        x = torch.randint(1000, dims)
        return lambda: f(x)

    return job


def pixels():
    x, m, d = torch.randint(256, (8, 112, 112, 3)).to(torch.uint8), torch.rand(3), torch.rand(3)
    return lambda: x.float().div_(255).sub_(m).div_(d)


def joined():
    x, y = (torch.rand(8, c, 28, 28).to(memory_format=torch.channels_last) for c in (16, 24))
    return lambda: torch.cat([x, y], 1)


def einsum(equation, a, b):
    return {"einsum " + equation: two(lambda x, y: torch.einsum(equation, x, y), a, b)}


I, T, BF, C = torch.int32, True, torch.bfloat16, torch.complex64
M = 1 << 20
JOBS = {
    "conv nchw 3x3 3 to 17": conv(8, 32, 32, 3, 17, 1, (3, 3), (1, 1), (1, 1), True, False),
    "conv nhwc 5x5 5 to 100": conv(8, 32, 32, 5, 100, 1, (5, 5), (1, 1), (1, 1), False, False),
    "conv nhwc 1x7 17": conv(8, 32, 32, 17, 17, 1, (1, 7), (1, 1), (1, 1), False, False),
    "conv nchw 7x1 17": conv(8, 32, 32, 17, 17, 1, (7, 1), (1, 1), (1, 1), True, False),
    "conv nchw 3x3 100 batch 1": conv(1, 64, 64, 100, 100, 1, (3, 3), (1, 1), (1, 1), True, False),
    "conv nhwc 3x3 stride 3 batch 64": conv(64, 14, 14, 32, 48, 1, (3, 3), (3, 3), (1, 1), False, False),
    "conv nchw 5x5 stride 2": conv(4, 56, 56, 32, 64, 1, (5, 5), (2, 2), (1, 1), True, False),
    "conv nchw dilated 3": conv(4, 40, 40, 24, 24, 1, (3, 3), (1, 1), (3, 3), True, False),
    "conv nchw 4 groups": conv(4, 32, 32, 48, 48, 4, (3, 3), (1, 1), (1, 1), True, False),
    "conv nhwc 32 groups": conv(4, 32, 32, 96, 96, 32, (3, 3), (1, 1), (1, 1), False, False),
    "conv nhwc depthwise 50": conv(4, 33, 33, 50, 50, 50, (3, 3), (1, 1), (1, 1), False, False),
    "conv nchw depthwise 50 stride 2": conv(4, 33, 33, 50, 50, 50, (3, 3), (2, 2), (1, 1), True, False),
    "conv nchw depthwise 5x5": conv(4, 33, 33, 64, 64, 64, (5, 5), (1, 1), (1, 1), True, False),
    "grad conv nhwc stride 2": conv(8, 28, 28, 32, 32, 1, (3, 3), (2, 2), (1, 1), False, True),
    "grad conv nhwc 4 groups": conv(8, 28, 28, 32, 32, 4, (3, 3), (1, 1), (1, 1), False, True),
    "grad conv nhwc depthwise stride 2": conv(4, 28, 28, 64, 64, 64, (3, 3), (2, 2), (1, 1), False, True),
    "grad conv nchw 16 to 24": conv(8, 28, 28, 16, 24, 1, (3, 3), (1, 1), (1, 1), True, True),
    "conv1d ncw 9": conv1d(1), "conv1d nwc 9 stride 2": conv1d(2),
    "matmul 10000x30x20": mm(torch.float32, 1, 10000, 20, 30, False),
    "matmul 8x8x50000": mm(torch.float32, 1, 8, 8, 50000, False),
    "matmul 7x5000x300": mm(torch.float32, 1, 7, 5000, 300, False),
    "matmul 1000x1000x3": mm(torch.float32, 1, 1000, 1000, 3, False),
    "matmul 500 of 4x4": mm(torch.float32, 5000, 4, 4, 4, False),
    "matmul 300 of 17x19x23": mm(torch.float32, 300, 17, 19, 23, False),
    "matmul 64 of 64x64x32 transposed": mm(torch.float32, 64, 64, 64, 32, True),
    "matmul 64 of 1x200x64": mm(torch.float32, 64, 1, 200, 64, False),
    "matmul f64 300": mm(torch.float64, 1, 300, 300, 300, False),
    "matmul i32 200": mm(torch.int32, 1, 200, 200, 200, False),
    "matmul bf16 128x1000x300": mm(torch.bfloat16, 1, 128, 1000, 300, False),
    "matmul bf16 1x4096x1024": mm(torch.bfloat16, 1, 1, 4096, 1024, False),
    "matmul bf16 32 of 64x64": mm(torch.bfloat16, 32, 64, 64, 64, False),
    "sum all": of(lambda x: x.sum(), 30, 31, 32, 33),
    "sum 1 2 3": of(lambda x: x.sum((1, 2, 3)), 30, 31, 32, 33),
    "sum 0 1 3": of(lambda x: x.sum((0, 1, 3)), 30, 31, 32, 33),
    "sum 2": of(lambda x: x.sum(2), 30, 31, 32, 33),
    "max 0 3": of(lambda x: x.amax((0, 3)), 30, 31, 32, 33),
    "max 3": of(lambda x: x.amax(3), 30, 31, 32, 33),
    "max 10000x7": of(lambda x: x.amax(1), 100000, 7),
    "argmax 1000x1000": of(lambda x: x.argmax(1), 1000, 1000),
    "argmax 1000x1000 axis 0": of(lambda x: x.argmax(0), 1000, 1000),
    "variance 1000x777": of(lambda x: x.var(1, correction=0), 1000, 777),
    "sum f64 1000x1000": of(lambda x: x.sum(1), 1000, 1000, dtype=torch.float64),
    "sum i32 1000x1000": ints(lambda x: x.sum(1, dtype=I), 1000, 1000),
    "cumsum i32 100x10000": ints(lambda x: x.cumsum(1, dtype=I), 100, 10000),
    "cumsum 1M": of(lambda x: x.cumsum(0), 1 << 20),
    "cummax 512x2000": of(lambda x: x.cummax(1).values, 512, 2000),
    "sort 1000x100": of(lambda x: x.sort(1), 1000, 100),
    "sort 10000x10": of(lambda x: x.sort(1), 10000, 10),
    "sort f64 100k": of(lambda x: x.sort(), 100000, dtype=torch.float64),
    "top 5 of 1000x1000": of(lambda x: x.topk(5, 1), 1000, 1000),
    "top 100 of 50000": of(lambda x: x.topk(100), 50000),
    "take 20k of 1000x7": ids(lambda x, i: x[i], (1000, 7), (20000,), 1000),
    "take columns 300 of 1000x1000": ids(lambda x, i: x.index_select(1, i), (1000, 1000), (300,), 1000),
    "take along axis 1000x500": ids(lambda x, i: x.gather(1, i), (1000, 500), (1000, 200), 500),
    "scatter skewed 100k to 1000x16": skewed, "scatter 1M numbers to 1000": numbers,
    "layer norm 1000x333": norm(layer, 1000, 333), "layer norm 10000x17": norm(layer, 10000, 17), "layer norm 16x50000": norm(layer, 16, 50000),
    "rms norm 1000x777": norm(lambda x, s, b: F.rms_norm(x, s.shape, s), 1000, 777),
    "group norm 8x32x32x30": group,
    "softmax 20000x10": of(lambda x: x.softmax(1), 20000, 10), "softmax 16x50000": of(lambda x: x.softmax(1), 16, 50000),
    "softmax 1000x333 axis 0": of(lambda x: x.softmax(0), 1000, 333),
    "log sum exp 2000x500": of(lambda x: x.logsumexp(1), 2000, 500),
    "concatenate axis 0": two(lambda x, z: torch.cat([x, z]), (500, 999), (300, 999)),
    "concatenate 3 and 5 of 50000 axis 1": two(lambda x, z: torch.cat([x, z], 1), (50000, 3), (50000, 5)),
    "pad 100x99x31": of(lambda x: F.pad(x, (1, 1, 2, 2)), 100, 99, 31),
    "pad planes": of(lambda x: F.pad(x, (1, 1, 1, 1)), 8, 32, 30, 30),
    "transpose 1000x333": of(lambda x: x.mT.contiguous(), 1000, 333),
    "transpose 0 2 3 1 of 8x3x100x100": of(lambda x: x.permute(0, 2, 3, 1).contiguous(), 8, 3, 100, 100),
    "transpose 0 3 1 2 of 8x100x100x3": of(lambda x: x.permute(0, 3, 1, 2).contiguous(), 8, 100, 100, 3),
    "transpose bf16 1000x1000": of(lambda x: x.mT.contiguous(), 1000, 1000, dtype=torch.bfloat16),
    "slice stride 2": of(lambda x: x[:, ::2].contiguous(), 1000, 1000),
    "reverse 1000x1000": of(lambda x: x.flip(1), 1000, 1000),
    "tile 3x4 of 300x100": of(lambda x: x.repeat(3, 4), 300, 100),
    "tanh exp erf 1M": of(lambda x: x.tanh().exp_().erf_(), 1 << 20),
    "sin 1M": of(torch.sin, 1 << 20), "log 1M": of(torch.log, 1 << 20), "sqrt 1M": of(torch.sqrt, 1 << 20),
    "pow 1M": two(torch.pow, (1 << 20,), (1 << 20,)),
    "pow f64 1M": two(lambda x, y: x.abs().pow(y), (1 << 20,), (1 << 20,), dtype=torch.float64),
    "exp f64 1M": of(torch.exp, 1 << 20, dtype=torch.float64), "sin f64 1M": of(torch.sin, 1 << 20, dtype=torch.float64), "tanh f64 1M": of(torch.tanh, 1 << 20, dtype=torch.float64),
    "divide 1000x1001 by column": two(lambda x, z: x / z, (1000, 1001), (1000, 1)),
    "remainder i32 1M": two(lambda x, z: x.fmod(z), (1 << 20,), (1 << 20,), I),
    "max pool nchw 2x2": of(lambda x: F.max_pool2d(x, 2), 8, 32, 64, 64),
    "lstm step 32x256": lstm,
    "fft 1000x1000": of(torch.fft.fft, 1000, 1000, dtype=torch.complex64),
    "fft 1000x16": of(torch.fft.fft, 10000, 16, dtype=torch.complex64),
    "fft 1M": of(torch.fft.fft, 1 << 20, dtype=torch.complex64),
    "rfft 64x4096": of(torch.fft.rfft, 64, 4096),
    "convert f32 to bf16": of(lambda x: x.to(torch.bfloat16), 1 << 20),
    "sum bf16 1000x1000": of(lambda x: x.sum(1), 1000, 1000, dtype=torch.bfloat16),
    "softmax bf16 1000x500": of(lambda x: x.softmax(1), 1000, 500, dtype=torch.bfloat16),
    "sum 1 of 37x41x43": of(lambda x: x.sum(1), 37, 41, 43),
    "sum 0 of 100003x3": of(lambda x: x.sum(0), 100003, 3),
    "sum 1 of 3x100003": of(lambda x: x.sum(1), 3, 100003),
    "sum 0 2 of 17x1000x19": of(lambda x: x.sum((0, 2)), 17, 1000, 19),
    "mean 1 of 8x49x768": of(lambda x: x.mean(1), 8, 49, 768),
    "max 1 of 64x3x1000": of(lambda x: x.amax(1), 64, 3, 1000),
    "count 1000x1000": bools(lambda x: x.sum(1, dtype=I), 1000, 1000),
    "any 1000x1000": bools(lambda x: x.any(1), 1000, 1000),
    "max i8 1000x1000": small_ints(lambda x: x.amax(1), torch.int8, 1000, 1000),
    "sum f16 999x1001 axis 0": of(lambda x: x.sum(0), 999, 1001, dtype=torch.float16),
    "prod 5000x13": of(lambda x: x.prod(1), 5000, 13),
    "argmin 20000x11": of(lambda x: x.argmin(1), 20000, 11),
    "sum of columns of a transpose": of(lambda x: x.T.sum(0), 1000, 777),
    "norm 0 of 513x511": of(lambda x: torch.linalg.vector_norm(x, dim=0), 513, 511),
    "variance 0 of 1000x333": of(lambda x: x.var(0, correction=0), 1000, 333),
    "variance 1 2 of 64x7x7x512": of(lambda x: x.var((1, 2), correction=0), 64, 7, 7, 512),
    "mean 0 2 3 of 16x17x29x29": of(lambda x: x.mean((0, 2, 3)), 16, 17, 29, 29),
    "log sum exp 0 of 1000x100": of(lambda x: x.logsumexp(0), 1000, 100),
    "softmax 128x12x50x50": of(lambda x: x.softmax(3), 128, 12, 50, 50),
    "softmax 1 of 64x21x400": of(lambda x: x.softmax(1), 64, 21, 400),
    "layer norm 64x50x96": norm(layer, 64, 50, 96),
    "group norm nchw 8x24x33x33": planes,
    "cumsum 777x1001": of(lambda x: x.cumsum(1), 777, 1001),
    "cumsum 1 of 30x31x32": of(lambda x: x.cumsum(1), 30, 31, 32),
    "cumprod 1000x100": of(lambda x: x.cumprod(1), 1000, 100),
    "cummax 0 of 2000x300": of(lambda x: x.cummax(0).values, 2000, 300),
    "cumsum f64 100x5000": of(lambda x: x.cumsum(1), 100, 5000, dtype=torch.float64),
    "transpose 0 2 1 of 50x77x33": of(lambda x: x.permute(0, 2, 1).contiguous(), 50, 77, 33),
    "transpose 3 1 0 2 of 13x17x19x23": of(lambda x: x.permute(3, 1, 0, 2).contiguous(), 13, 17, 19, 23),
    "transpose i8 777x999": small_ints(lambda x: x.T.contiguous(), torch.int8, 777, 999),
    "transpose f64 500x700": of(lambda x: x.T.contiguous(), 500, 700, dtype=torch.float64),
    "flip 0 of 1000x1000": of(lambda x: x.flip(0), 1000, 1000),
    "flip bf16 1000x1000": of(lambda x: x.flip(1), 1000, 1000, dtype=BF),
    "flip 1 2 of 3x513x511": of(lambda x: x.flip(1, 2), 3, 513, 511),
    "slice stride 3": of(lambda x: x[:, :999:3].contiguous(), 1000, 1000),
    "roll 37 of 1000x1000": of(lambda x: x.roll(37, 1), 1000, 1000),
    "repeat 3 of 10000x7": of(lambda x: x.repeat_interleave(3, 1), 10000, 7),
    "tile 1x1x5 of 100x20x3": of(lambda x: x.repeat(1, 1, 5), 100, 20, 3),
    "spread 1000x1 to 1000x1000": of(lambda x: x.expand(1000, 1000).contiguous(), 1000, 1),
    "stack 3 of 100000": of(lambda x: torch.stack([x, x, x], 1), 100000),
    "pad 1000x100": of(lambda x: F.pad(x, (1, 1)), 1000, 100),
    "triu 1000x1000": of(torch.triu, 1000, 1000),
    "add row bf16 999x1001": both(torch.add, BF, (999, 1001), (1001,)),
    "add i8 1M": both(torch.add, torch.int8, (M,), (M,)), "mul i64 1M": both(torch.mul, torch.int64, (M,), (M,)),
    "greater 1M": both(torch.gt, torch.float32, (M,), (M,)), "and 1M": both(torch.logical_and, torch.bool, (M,), (M,)),
    "outer sum 1000 1001": both(torch.add, torch.float32, (1000, 1), (1001,)),
    "convert i8 to f32": small_ints(lambda x: x.float(), torch.int8, M),
    "convert f32 to i32": of(lambda x: x.to(I), M),
    "convert bool to f32": bools(lambda x: x.float(), M),
    "sigmoid f16 1M": of(torch.sigmoid, M, dtype=torch.float16),
    "add transposed 1000x1000": of(lambda x: x + x.T, 1000, 1000),
    "add flipped 1000x1000": of(lambda x: x + x.flip(1), 1000, 1000),
    "exp 7": of(torch.exp, 7), "softmax 1x10": of(lambda x: x.softmax(1), 1, 10),
    "matmul 1 of 3x3x3": mm(torch.float32, 1, 3, 3, 3, False),
    "matmul 4096x3x5": mm(torch.float32, 1, 4096, 3, 5, False),
    "matmul 100 of 7x9x31": mm(torch.float32, 100, 7, 9, 31, False),
    "matmul i64 100": mul64,
    "take 5000 of 1000x64 bf16": taken((1000, 64), 5000, BF),
    "take 20000 of 1000": taken((1000,), 20000),
    "mul c64 262144": both(torch.mul, C, (1 << 18,), (1 << 18,)),
    "sum c64 512x512": of(lambda x: x.sum(1), 512, 512, dtype=C),
    "sum c64 512x512 axis 0": of(lambda x: x.sum(0), 512, 512, dtype=C),
    "matmul c64 200": mm(C, 1, 200, 200, 200, False),
    "fft 64x210": of(torch.fft.fft, 64, 210, dtype=C),
    "fft 0 of 128x1000": of(lambda x: torch.fft.fft(x, dim=0), 128, 1000, dtype=C),
    "fft 1 2 of 8x64x64": of(torch.fft.fft2, 8, 64, 64, dtype=C),
    "rfft 1000x96": of(torch.fft.rfft, 1000, 96),
    "sort i32 300x300": ints(lambda x: x.sort(1), 300, 300),
    "cumsum 1 of 16x200x64": of(lambda x: x.cumsum(1), 16, 200, 64),
    "argmax 1 of 32x100x50": of(lambda x: x.argmax(1), 32, 100, 50),
    "one hot 10000 of 100": hot,
    "take 50 of axis 1 of 64x200x32": ids(lambda x, i: x.index_select(1, i), (64, 200, 32), (50,), 200),
    "embedding bags 500 of 20": bags,
    "where 1M": where((M,), (M,)), "masked fill 64x128x128": where((64, 128, 128), (128, 128)),
    "nearest 2 of 8x32x32x16": channels_last(nearest, 8, 16, 32, 32), "nearest 2 of 8x48x48x3": channels_last(nearest, 8, 3, 48, 48),
    "gradient of nearest 2 of 8x32x32x16": nearest_grad,
    "layer norm of axes 1 2 of 64x20x30": of(lambda x: F.layer_norm(x, (20, 30)), 64, 20, 30),
    "triangular 256 for 64": triangle((256, 256), (256, 64)), "triangular 100 of 16 for 5": triangle((100, 16, 16), (100, 16, 5)),
    "any 0 of 1000x1000": bools(lambda x: x.any(0), 1000, 1000), "all 1 of 5000x30": bools(lambda x: x.all(1), 5000, 30),
    "clamp i32 1M": ints(lambda x: x.clamp(3, 70), M),
    "sum i64 1000x1000": wide_ints(lambda x: x.sum(1), 1000, 1000), "min i64 0 of 1000x1000": wide_ints(lambda x: x.amin(0), 1000, 1000),
    "prod 0 of 300x1000": of(lambda x: x.prod(0), 300, 1000),
    "differences 1000x1000": of(lambda x: x.diff(dim=1), 1000, 1000),
    "log cumulative sum exp 200x500": of(lambda x: x.logcumsumexp(1), 200, 500),
    "argsort 1000x50": of(lambda x: x.argsort(1), 1000, 50),
    "normalize u8 8x112x112x3": pixels,
    "f32 to u8 1M": of(lambda x: x.clamp(0, 255).to(torch.uint8), M),
    "layer norm f16 512x768": of(lambda x: F.layer_norm(x, (768,)), 512, 768, dtype=torch.float16),
    "gelu bf16 1M": of(lambda x: F.gelu(x, approximate="tanh"), M, dtype=BF), "softmax f16 512x100": of(lambda x: x.softmax(1), 512, 100, dtype=torch.float16),
    **einsum("bqhd,bkhd->bhqk", (4, 64, 8, 32), (4, 64, 8, 32)), **einsum("bhqk,bkhd->bqhd", (4, 8, 64, 64), (4, 64, 8, 32)),
    **einsum("bij,bkj->bik", (100, 20, 30), (100, 25, 30)), **einsum("ij,ij->i", (5000, 64), (5000, 64)),
    **einsum("i,j->ij", (1000,), (1000,)), **einsum("bic,ijc->bij", (50, 30, 16), (30, 40, 16)),
    **einsum("ij,j->i", (2000, 2000), (2000,)), **einsum("ij,i->j", (2000, 2000), (2000,)), **einsum("i,i->", (M,), (M,)),
    "transpose bf16 0 2 1 3 of 4x128x8x64": of(lambda x: x.transpose(1, 2).contiguous(), 4, 128, 8, 64, dtype=BF),
    "concatenate channels 16 and 24": joined,
    "cross entropy 512x1000 and its gradient": entropy,
    "gradient of softmax 1000x100": grad(lambda x: x.softmax(1), 1000, 100),
    "gradient of layer norm 2000x96": grad(lambda x: F.layer_norm(x, (96,)), 2000, 96),
    "gradient of cumsum 200x1000": grad(lambda x: x.cumsum(1), 200, 1000),
    "gradient of max 1 of 500x300": grad(lambda x: x.max(1).values, 500, 300),
    "cross entropy 256x10000": classes,
    "f32 to i64 1M": of(lambda x: x.long(), M), "f64 to i64 1M": of(lambda x: x.long(), M, dtype=torch.float64),
    "equal i64 300k": both(torch.eq, torch.int64, (300000,), (300000,)),
    "argmax f64 1000x500": of(lambda x: x.argmax(1), 1000, 500, dtype=torch.float64),
    "bincount 1000 of 300k": of(lambda x: torch.bincount(hashed(x, 2000), minlength=1000), 300000),
    "histogram 100 of 300k": of(lambda x: torch.histc(x, 100, -1, 1), 300000),
    "quotients of i32 300k": of(lambda x: torch.div(hashed(x, 1e9), hashed(x, 100) + 1, rounding_mode="trunc"), 300000),
    "linear 64 of 4x32x32x32": channels_last(linear, 4, 32, 32, 32), "gradient of linear 64 of 4x32x32x32": linear_grad,
    "gradient of take along 1 of 1000x500": along,
    "gradient of every other of 1000x1000": grad(lambda x: x[::2, ::2], 1000, 1000),
    "silu 1M": of(F.silu, M), "softplus 1M": of(F.softplus, M), "std 0 of 5000x64": of(lambda x: x.std(0), 5000, 64),
    "top 80 of 300x1000": of(lambda x: x.topk(80, 1), 300, 1000),
}

if __name__ == "__main__":
    serve(JOBS)
