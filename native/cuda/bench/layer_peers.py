"""Times layers of package layers in PyTorch, and prints them beside those of a log of BenchmarkLayers, the slowest beside PyTorch
first: training steps by SGD under autocast to bf16, or in f32 with RLX_BENCH_F32, or losses alone with RLX_BENCH_FORWARD, captured
in a CUDA graph. Images have their channels last, as in the log, unless the layer is one of planes. It is eager, as most of these
layers are a kernel of a library.

    python3 layer_peers.py LOG
"""

import math
import os
import sys

import torch
import torch.nn.functional as F

from peers import captured, torch_seconds
from table import benchmarks

FORWARD = bool(os.environ.get("RLX_BENCH_FORWARD"))
WIDE = bool(os.environ.get("RLX_BENCH_F32"))
LAYERS = {}
UNCAPTURED = set()  # layers that wait for the device, which a graph cannot
SHAPES = [(64, 32, 56, 56), (8, 12, 300, 300), (4096, 1000), (7, 50, 80, 200), (16, 3, 512, 512), (2000, 5, 7, 100)]


def leaf(*shape, last=False):
    x = torch.randn(*shape, device="cuda") * 0.3
    return (x.to(memory_format=torch.channels_last) if last else x).requires_grad_(not FORWARD)


def ints(below, *shape):
    return torch.randint(0, below, shape, device="cuda")


def join(values):
    return " ".join(map(str, values))


def layer(name, f, *leaves, captured=True):
    """Adds a layer: leaves are functions that make its operands."""
    LAYERS[name] = (f, leaves)
    if not captured:
        UNCAPTURED.add(name)


def plain(*shape, last=False):
    return lambda: leaf(*shape, last=last)


def convolution(name, x, w, last, **options):
    conv = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x)]
    layer(name, lambda x, w: conv(F.relu(x), w, **options), plain(*x, last=last), plain(*w, last=last))


def convolutions():
    for c in [
        (32, 56, 56, 24, 40, 3, 1, 1, 1), (32, 57, 43, 48, 48, 5, 2, 1, 1), (16, 64, 64, 96, 96, 7, 1, 1, 96),
        (16, 64, 64, 64, 64, 3, 1, 4, 1), (8, 128, 128, 3, 17, 3, 1, 1, 1), (8, 128, 128, 17, 1, 1, 1, 1, 1),
        (64, 28, 28, 120, 120, 3, 2, 1, 120), (64, 28, 28, 100, 200, 1, 1, 1, 1), (16, 56, 56, 128, 128, 3, 1, 1, 8),
        (16, 56, 56, 60, 60, 3, 1, 1, 20), (4, 256, 256, 32, 32, 3, 1, 1, 1), (4, 256, 256, 8, 8, 9, 1, 1, 1),
        (2, 512, 512, 16, 3, 3, 1, 1, 1), (128, 8, 8, 512, 512, 3, 1, 1, 1), (128, 7, 7, 256, 1024, 1, 1, 1, 1),
    ]:
        n, h, w, i, o, k, s, d, g = c
        options = {"stride": s, "padding": d * (k - 1) // 2, "dilation": d, "groups": g}
        convolution(f"convolution {{{join(c)}}}", (n, i, h, w), (o, i // g, k, k), True, **options)
    for x, w, s, p, g in [
        ((32, 64, 4000), (64, 64, 9), 1, 4, 1), ((16, 1, 64000), (64, 1, 16), 4, 6, 1), ((16, 1024, 1000), (1024, 1, 4), 1, 3, 1024),
        ((2, 32, 32, 32, 32), (32, 32, 3, 3, 3), 1, 1, 1), ((4, 4, 48, 48, 48), (8, 4, 3, 3, 3), 1, 1, 1),
        ((32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1), ((32, 64, 56, 56), (128, 64, 3, 3), 2, 1, 1),
        ((32, 128, 56, 56), (128, 1, 5, 5), 1, 2, 128), ((32, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    ]:
        strides = "" if s == 1 else join([s] * (len(x) - 2))
        convolution(f"convolution of planes [{join(x)}] [{join(w)}] [{strides}]", x, w, False, stride=s, padding=p, groups=g)
    for x, w, s, p, d, g in [
        ((32, 17, 17, 192), (1, 7, 192, 192), 1, (0, 3), 1, 1), ((64, 224, 224, 3), (16, 16, 3, 384), 16, 0, 1, 1),
        ((64, 224, 224, 3), (4, 4, 3, 96), 4, 0, 1, 1), ((32, 56, 56, 96), (2, 2, 96, 192), 2, 0, 1, 1),
        ((16, 84, 84, 4), (8, 8, 4, 32), 4, 0, 1, 1), ((16, 56, 56, 64), (3, 3, 1, 128), 1, 1, 1, 64),
        ((16, 65, 65, 48), (3, 3, 48, 64), 3, 0, 2, 1), ((64, 28, 28, 1), (5, 5, 1, 20), 1, 0, 1, 1),
        ((4, 64, 64, 1280), (3, 3, 1280, 640), 1, 1, 1, 1), ((64, 14, 14, 480), (5, 5, 1, 480), 1, 2, 1, 480),
        ((1, 800, 1333, 3), (7, 7, 3, 64), 2, 3, 1, 1),
    ]:
        strides = "" if s == 1 else join([s, s])
        options = {"stride": s, "padding": p, "dilation": d, "groups": g}
        convolution(f"convolution [{join(x)}] [{join(w)}] [{strides}]", (x[0], x[3], x[1], x[2]), (w[3], w[2], w[0], w[1]), True, **options)
    for c in [(16, 32, 64, 32), (16, 16, 128, 64), (4, 128, 16, 3)]:
        n, size, i, o = c
        layer(f"transposed convolution [{join(c)}]", lambda x, w: F.conv_transpose2d(x, w, None, 2, 1),
              plain(n, i, size, size, last=True), plain(i, o, 4, 4))


def windows():
    for p in [(64, 112, 64, 3), (16, 57, 96, 2), (16, 64, 100, 5), (4, 256, 16, 7)]:
        n, size, c, k = p
        x = plain(n, c, size, size, last=True)
        for s in (1, 2):
            layer(f"max pool [{join(p)}] by {s}", lambda x, k=k, s=s: F.max_pool2d(F.relu(x), k, s, k // 2), x)
            layer(f"mean pool [{join(p)}] by {s}", lambda x, k=k, s=s: F.avg_pool2d(F.relu(x), k, s, k // 2), x)
        layer(f"adaptive pool [{join(p)}]", lambda x: F.adaptive_avg_pool2d(F.relu(x), 7), x)
        for name, mode in (("nearest", "nearest"), ("linear", "bilinear"), ("cubic", "bicubic")):
            for to in (2 * size, 3 * size // 4):
                layer(f"resize {name} [{join(p)}] to {to}", lambda x, to=to, mode=mode: F.interpolate(F.relu(x), size=(to, to), mode=mode), x)
    layer("grid sample", lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False), plain(8, 32, 64, 64, last=True), plain(8, 64, 64, 2))


def moves():
    for s in SHAPES:
        for axis in range(len(s)):
            for name, f in (
                ("softmax", F.softmax), ("sum so far", torch.cumsum),
                ("maximum so far", lambda x, axis: torch.cummax(x, axis).values), ("sort", lambda x, axis: torch.sort(x, axis).values),
            ):
                layer(f"{name} [{join(s)}] along {axis}", lambda x, f=f, axis=axis: f(x, axis), plain(*s))
    for v in [(4096, 50257), (64, 1000), (20000, 10), (512, 250000)]:
        layer(f"largest 8 of [{join(v)}]", lambda x: torch.topk(x, 8).values, plain(*v))
    layer("einsum ab,cd->acbd", lambda x, y: torch.einsum("ab,cd->acbd", x, y), plain(300, 40), plain(200, 30))
    layer("outer product", torch.outer, plain(5000), plain(3000))
    layer("pointwise gumbel softmax", lambda x: F.gumbel_softmax(x, dim=1), plain(4000, 1500))
    layer("pointwise noise", lambda x: x * torch.randn_like(x), plain(4000, 1500))
    layer("pointwise dropout", lambda x: F.dropout(x, 0.1), plain(4000, 1500))
    for t in [(100000, 64, 200000), (1000, 512, 8192), (1000000, 16, 50000), (30, 256, 100000), (50000, 3, 400000)]:
        rows, width, reads = t
        layer(f"embedding [{join(t)}]", lambda i, x: F.embedding(i, x), lambda rows=rows, reads=reads: ints(rows, reads), plain(rows, width))


def recurrences():
    for name, kind, steps, batch, width, hidden, both in [
        ("lstm", torch.nn.LSTM, 50, 64, 100, 200, False), ("gru", torch.nn.GRU, 100, 32, 128, 256, False),
        ("lstm in both directions", torch.nn.LSTM, 80, 64, 64, 128, True), ("scan of rows", torch.nn.RNN, 60, 512, 64, 64, False),
    ]:
        net = kind(width, hidden, bidirectional=both).cuda()
        last = slice(-1, None) if name == "scan of rows" else slice(None)
        layer(name, lambda x, *w, net=net, last=last: net(x)[0][last], plain(steps, batch, width), *[lambda w=w: w for w in net.parameters()])


def norms():
    for s in [(32, 56, 56, 64), (128, 7, 7, 512), (16, 128, 128, 24)]:
        n, h, w, c = s
        for name, last, net in (("batch norm", True, torch.nn.BatchNorm2d(c)), ("batch norm of planes", False, torch.nn.BatchNorm2d(c)), ("group norm of planes", False, torch.nn.GroupNorm(8, c))):
            act = F.silu if name.startswith("group") else F.relu
            net = net.cuda()
            layer(f"{name} [{join(s)}]", lambda x, *w, net=net, act=act: act(net(x)), plain(n, c, h, w, last=last), *[lambda w=w: w for w in net.parameters()])


def attentions():
    half = torch.float32 if WIDE else torch.bfloat16
    sdpa = F.scaled_dot_product_attention
    for name, shapes, mask, options in [
        ("grouped", [(2, 32, 1024, 128), (2, 4, 1024, 128), (2, 4, 1024, 128)], None, {"is_causal": True, "enable_gqa": True}),
        ("many short", [(4096, 4, 16, 32)] * 3, None, {}), ("masked", [(4, 8, 512, 64)] * 3, (8, 512, 512), {}),
        ("windows of 49", [(512, 4, 49, 32)] * 3, (4, 49, 49), {}),
    ]:
        leaves = [plain(*s) for s in shapes] + ([plain(*mask)] if mask else [])
        layer(f"attention {name}", lambda q, k, v, m=None, options=options: sdpa(q, k, v, None if m is None else m.to(half), **options), *leaves)


def spectra():
    for s in [(256, 1024), (100, 997), (2000, 60), (1, 1 << 20), (3, 262143)]:
        layer(f"spectrum of real rows [{join(s)}]", lambda x: torch.fft.rfft(x.float()).abs().square(), plain(*s))
        layer(f"filter in the spectrum [{join(s)}]", lambda x, re, im, n=s[1]: torch.fft.irfft(torch.fft.rfft(x.float()) * torch.complex(re, im), n=n), plain(*s), plain(s[1] // 2 + 1), plain(s[1] // 2 + 1))


def matrices():
    layer("distances", torch.cdist, plain(1000, 64), plain(1200, 64))
    layer("city-block distances", lambda x, y: torch.cdist(x, y, 1), plain(1000, 16), plain(1200, 16))
    for s in [(1, 600), (30, 100), (4000, 12)]:
        one = 9 * torch.eye(s[1], device="cuda")
        for name, f in (
            ("Cholesky", torch.linalg.cholesky), ("inverse", torch.linalg.inv), ("log of determinants", lambda a: torch.linalg.slogdet(a)[1]),
            ("eigenvalues", lambda a: torch.linalg.eigvalsh(a)), ("QR", lambda a: torch.linalg.qr(a)[1]),
        ):
            layer(f"{name} [{join(s)}]", lambda x, f=f, one=one: f((x @ x.mT).float() + one), plain(s[0], s[1], s[1]), captured=False)
    layer("QR of a tall matrix", lambda x: torch.linalg.qr(x.float())[0], plain(20000, 32), captured=False)
    layer("singular values of tall matrices", lambda x: torch.linalg.svdvals(x.float()), plain(200, 100, 10), captured=False)
    layer("exponentials of matrices", lambda x: torch.linalg.matrix_exp(x.float()), plain(500, 8, 8), captured=False)


def step(f, operands):
    with torch.autocast("cuda", torch.bfloat16, enabled=not WIDE), torch.set_grad_enabled(not FORWARD):
        loss = f(*operands).float().square().mean()
    if FORWARD:
        return
    trained = [x for x in operands if x.requires_grad]
    gradients = torch.autograd.grad(loss, trained)
    with torch.no_grad():
        torch._foreach_add_(trained, list(gradients), alpha=-1e-3)


def milliseconds(name):
    """Returns the milliseconds of a layer, in a graph unless it is one of UNCAPTURED."""
    f, leaves = LAYERS[name]
    operands = [make() for make in leaves]
    run = lambda: step(f, operands)
    if name not in UNCAPTURED:
        run = captured(run)
    return torch_seconds(run, 10, 3) * 1e3


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not WIDE
    torch.backends.cudnn.benchmark = True
    for kind in (convolutions, windows, moves, recurrences, norms, attentions, spectra, matrices):
        kind()
    with open(sys.argv[1], errors="replace") as log:
        ours = {name.partition("/")[2].replace("_", " "): values["ms"] for name, values in benchmarks(log).items() if name.startswith("BenchmarkLayers/")}
    rows = []
    for name in sorted(LAYERS, key=lambda name: name in UNCAPTURED):
        if name not in ours:
            sys.exit(f"{sys.argv[1]} has no layer {name!r}")
        try:
            peer = milliseconds(name)
        except RuntimeError as refused:
            print(f"# {name}: {str(refused).splitlines()[0]}")
            continue
        rows.append((ours[name] / peer, ours[name], peer, name))
        torch.cuda.empty_cache()
    rows.sort(reverse=True)
    print(f"{'ratio':>6} {'rlx ms':>8} {'PyTorch':>8}  layer")
    for ratio, own, peer, name in rows:
        print(f"{ratio:6.2f} {own:8.3f} {peer:8.3f}  {name}")
    mean = math.exp(sum(math.log(r[0]) for r in rows) / len(rows))
    print(f"{len(rows)} layers, {sum(r[0] <= 1 for r in rows)} at most PyTorch's time, geometric mean {mean:.2f}")


if __name__ == "__main__":
    main()
