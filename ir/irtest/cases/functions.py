"""Writes functions.json: values, gradients and second derivatives of the functions over a builder in packages image,
signal, cmplx, stats and losses, by PyTorch (2.15.0), NumPy (2.4.6), SciPy (1.17.1) and Pillow (13.0.0).

    python -m venv v && v/bin/pip install torch numpy scipy pillow && v/bin/python functions.py

They are computed in float64 from inputs that f32 holds. Gradients are those of sum(y * w) over all results, with w
the stored numbers; second derivatives those of sum(gradient * d), with d the stored directions, by central differences
of the gradients. Images are stored with the channels last.
"""
import itertools, json, math, os
import eig
import numpy as np, scipy.fft, torch
import torch.nn.functional as F
from PIL import Image

torch.manual_seed(1)
np.random.seed(1)
torch.set_default_dtype(torch.float64)
cases = []

def R(*s): return (torch.randn(s) * 64).round() / 64

same = lambda x: x
last = lambda x: x.movedim(1, -1)
flip = lambda x: x.transpose(1, 2)

def number(v):
    if math.isnan(v) or math.isinf(v): return {True: "NaN"}.get(math.isnan(v), "Infinity" if v > 0 else "-Infinity")
    v = float("%.9g" % v)
    return int(v) if v == int(v) and abs(v) < 1e9 and not (v == 0 and math.copysign(1, v) < 0) else v

def tensor(x, dtype=None):
    x = torch.as_tensor(x).detach().contiguous()
    d = dtype or ("i32" if x.dtype in (torch.int64, torch.int32, torch.bool) else "f32")
    return {"d": d, "s": list(x.shape), "v": [number(float(v)) for v in x.flatten().tolist()]}

def case(name, inputs, f, lay={}, out=same, grads=None, second=True, dtype=None):
    """inputs: name -> tensor as torch takes it; lay: name -> its stored layout; grads: names with gradients."""
    if grads is None: grads = [k for k, x in inputs.items() if x.is_floating_point()]
    def run(values):
        ys = f(**values)
        return list(ys) if isinstance(ys, (tuple, list)) else [ys]
    ys = run(inputs)
    if not any(y.is_floating_point() for y in ys): grads = []
    c = {"name": name, "inputs": {k: tensor(lay.get(k, same)(x), dtype and x.is_floating_point() and dtype or None) for k, x in inputs.items()}, "outputs": [tensor(out(y)) for y in ys]}
    if grads:
        ws = [R(*y.shape) if y.is_floating_point() else None for y in ys]
        def gradient(values):
            leaves = {k: values[k].clone().requires_grad_() for k in grads}
            loss = sum((y * w).sum() for y, w in zip(run({**values, **leaves}), ws) if w is not None)
            got = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
            return {k: torch.zeros_like(values[k]) if g is None else g for k, g in zip(grads, got)}
        g = gradient(inputs)
        c["weights"] = [tensor(out(w)) if w is not None else None for w in ws]
        c["grads"] = {k: tensor(lay.get(k, same)(g[k])) for k in grads}
        if second:
            ds = {k: R(*inputs[k].shape) for k in grads}
            e = 1e-5
            up, down = (gradient({**inputs, **{k: inputs[k] + s * e * ds[k] for k in grads}}) for s in (1, -1))
            c["directions"] = {k: tensor(lay.get(k, same)(ds[k])) for k in grads}
            h = {k: (up[k] - down[k]) / (2 * e) for k in grads}
            c["second"] = {k: tensor(lay.get(k, same)(torch.where(h[k].abs() < 1e-7, 0., h[k]))) for k in grads}
    cases.append(c)

# image
image = {"x": last}
modes = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
paddings = {"zeros": "zeros", "edge": "border", "reflect": "reflection"}
for mode, padding, align in itertools.product(modes, paddings, (False, True)):
    if mode == "nearest" and align: continue
    x, grid = R(2, 2, 3, 4), (R(2, 3, 2, 2) * 0.7 * 128).round() / 128 + 1 / 333
    grid = grid.float().double()
    case(f"image.grid_sample {mode} {padding}{' align' if align else ''}", {"x": x, "grid": grid},
         lambda x, grid, m=modes[mode], p=paddings[padding], a=align: F.grid_sample(x, grid, m, p, a), image, last,
         second=(mode, padding) in (("linear", "zeros"), ("cubic", "edge")))
case("image.grid_sample 3d", {"x": R(1, 2, 3, 2, 4), "grid": (R(1, 2, 2, 2, 3) * 0.7 + 1 / 333).float().double()},
     lambda x, grid: F.grid_sample(x, grid, align_corners=False), image, last, second=False)
case("image.grid_sample infinite", {"x": R(1, 1, 2, 2), "grid": torch.tensor([[[[1e20, 0.25], [-1e9, 0.]], [[0.25, -0.25], [1., 1.]]]])},
     lambda x, grid: F.grid_sample(x, grid, align_corners=True), image, last, grads=["x"], second=False)
for align in (False, True):
    case(f"image.affine_grid{' align' if align else ''}", {"theta": R(2, 2, 3)}, lambda theta, a=align: F.affine_grid(theta, (2, 1, 3, 4), a), second=False)
case("image.affine_grid 3d", {"theta": R(1, 3, 4)}, lambda theta: F.affine_grid(theta, (1, 1, 2, 3, 2), False), second=False)

for name, x, f in [
    ("linear", R(1, 2, 4, 5), lambda x: F.interpolate(x, (7, 3), mode="bilinear")),
    ("linear align", R(1, 2, 4, 5), lambda x: F.interpolate(x, (7, 3), mode="bilinear", align_corners=True)),
    ("linear antialias", R(1, 2, 7, 9), lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True)),
    ("linear antialias up", R(1, 1, 3, 9), lambda x: F.interpolate(x, (5, 2), mode="bilinear", antialias=True)),
    ("cubic", R(1, 2, 4, 5), lambda x: F.interpolate(x, (7, 3), mode="bicubic")),
    ("cubic antialias", R(1, 2, 7, 9), lambda x: F.interpolate(x, (3, 12), mode="bicubic", antialias=True)),
    ("nearest", R(1, 2, 4, 5), lambda x: F.interpolate(x, (7, 3), mode="nearest-exact")),
    ("nearest floor", R(1, 2, 4, 5), lambda x: F.interpolate(x, (7, 3), mode="nearest")),
    ("one axis", R(1, 2, 5), lambda x: F.interpolate(x, 8, mode="linear")),
    ("three axes", R(1, 1, 2, 3, 2), lambda x: F.interpolate(x, (3, 2, 4), mode="trilinear")),
]:
    case("image.resize " + name, {"x": x}, f, image, last, second=False)
def lanczos(x, h, w):
    i = Image.fromarray(x.numpy().astype(np.float32), mode="F").resize((w, h), Image.Resampling.LANCZOS)
    return torch.as_tensor(np.array(i).astype(np.float64))
x = R(7, 9)
case("image.resize lanczos", {"x": x[None, :, :, None]}, lambda x: lanczos(x[0, :, :, 0], 3, 12)[None, :, :, None], grads=[])

for mode, low, high in [("symmetric", (0, 5, 1), (0, 2, 0)), ("reflect", (0, 7, 1), (0, 9, 0)), ("wrap", (0, 4, 1), (1, 8, 0)), ("edge", (0, 2, 1), (0, 1, 3))]:
    x = R(2, 3, 2)
    index = [torch.as_tensor(np.pad(np.arange(n), (l, h), mode=mode)) for n, l, h in zip(x.shape, low, high)]
    case("image.pad " + mode, {"x": x}, lambda x, i=index: x[i[0]][:, i[1]][:, :, i[2]], second=False)
case("image.pad integers", {"x": torch.tensor([[3, -1, 2]])}, lambda x: torch.as_tensor(np.pad(x.numpy(), ((0, 0), (4, 4)), mode="symmetric")))
case("image.unfold", {"x": R(2, 2, 4, 5)}, lambda x: F.unfold(x, (2, 3), padding=(1, 0), stride=(2, 1), dilation=(1, 2)), image, flip, second=False)
case("image.fold", {"x": R(2, 12, 9)}, lambda x: F.fold(x, (4, 5), (2, 3), padding=(1, 1), stride=(2, 2)), {"x": flip}, last, second=False)

# signal: the transforms are linear, so that their gradient is the transposed matrix
def dct(kind, n, norm, inverse):
    f = scipy.fft.idct if inverse else scipy.fft.dct
    return torch.as_tensor(f(np.eye(n), type=kind, norm=norm, axis=0))
for kind, norm, inverse in itertools.product((1, 2, 3, 4), ("backward", "ortho", "forward"), (False, True)):
    n = {1: 5, 2: 7, 3: 6, 4: 5}[kind]
    m = dct(kind, n, norm, inverse)
    case(f"signal.{'idct' if inverse else 'dct'} {kind} {norm}", {"x": R(2, n)}, lambda x, m=m: x @ m.T, second=False)
case("signal.dct first axis", {"x": R(4, 2)}, lambda x, m=dct(2, 4, "backward", False): m @ x, second=False)
for kind, n in [(1, 2), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)]:
    case(f"signal.dct {kind} of {n}", {"x": R(n)}, lambda x, m=dct(kind, n, "ortho", False): m @ x, second=False)

def interp(x, xp, fp):
    i = torch.searchsorted(xp.detach(), x.detach(), right=True).clamp(1, len(xp) - 1)
    run = xp[i] - xp[i - 1]
    y = fp[i - 1] + (x - xp[i - 1]) / torch.where(run == 0, 1., run) * (fp[i] - fp[i - 1])
    y = torch.where(x < xp[0], fp[0], torch.where(x > xp[-1], fp[-1], y))
    want = np.interp(x.detach().numpy(), xp.detach().numpy(), fp.detach().numpy())
    assert np.allclose(y.detach().numpy(), want, equal_nan=True), (y, want)
    return y
case("signal.interp", {"x": torch.tensor([[-1., 0.25, 0.7], [1.5, 2.75, 9.]]).float().double(), "xp": torch.tensor([0., 0.5, 1., 2.5, 3.]), "fp": R(5)}, interp)
case("signal.interp edges", {"x": torch.tensor([math.nan, -math.inf, math.inf, 0., 1., 2.]), "xp": torch.tensor([0., 1., 2.]), "fp": torch.tensor([5., 7., 4.])}, interp, grads=[])

# cmplx, by the parts: the gradients by them are real
def parts(f):
    def g(re, im):
        z = f(torch.complex(re, im))
        return [z.real, z.imag] if z.is_complex() else z
    return g
def points(): return {"re": torch.tensor([1.5, -0.25, -2., 0.5, 0., -1.]), "im": torch.tensor([0.5, 1.25, -0.75, -3., 2., 0.125])}
for name, f in [("abs", torch.abs), ("angle", torch.angle), ("exp", torch.exp), ("log", torch.log), ("sqrt", torch.sqrt),
                ("sin", torch.sin), ("cos", torch.cos), ("sinh", torch.sinh), ("cosh", torch.cosh)]:
    case("cmplx." + name, points(), parts(f))
case("cmplx.polar", {"r": R(5).abs(), "theta": R(5) * 3}, lambda r, theta: (lambda z: [z.real, z.imag])(torch.polar(r, theta)))
p, q = points(), points()
case("cmplx.pow", {**p, "re2": q["re"].flip(0) * 0.5, "im2": q["im"].flip(0) * 0.5},
     lambda re, im, re2, im2: (lambda z: [z.real, z.imag])(torch.complex(re, im) ** torch.complex(re2, im2)))
case("cmplx.mul", {**p, "re2": q["re"].flip(0), "im2": q["im"].flip(0)}, lambda re, im, re2, im2: (lambda z: [z.real, z.imag])(torch.complex(re, im) * torch.complex(re2, im2)))
case("cmplx.div", {**p, "re2": q["re"].flip(0), "im2": q["im"].flip(0)}, lambda re, im, re2, im2: (lambda z: [z.real, z.imag])(torch.complex(re, im) / torch.complex(re2, im2)))
inf = math.inf
edges = {"re": torch.tensor([-4., -4., 0., -0., -inf, 3e38, 1e-30]), "im": torch.tensor([0., -0., 0., -2., 1., 3e38, 1e-30])}
def by_numpy(f):
    def g(re, im):
        z = f(re.numpy() + 1j * 0); z = f(np.array([complex(a, b) for a, b in zip(re.tolist(), im.tolist())]))
        return [torch.as_tensor(z.real.copy()), torch.as_tensor(z.imag.copy())] if np.iscomplexobj(z) else torch.as_tensor(z)
    return g
roots = {"re": torch.tensor([-4., -4., 0., -0., 1., -1., -inf, math.nan, inf, -inf]), "im": torch.tensor([0., -0., 0., -2., inf, -inf, inf, -inf, 2., -3.])}
case("cmplx.sqrt edges", roots, by_numpy(np.sqrt), grads=[])
case("cmplx.angle edges", {k: v[:4] for k, v in edges.items()}, by_numpy(np.angle), grads=[])
case("cmplx.exp edges", {"re": torch.tensor([-inf, -inf, 0.]), "im": torch.tensor([1., -2., 0.])}, by_numpy(np.exp), grads=[])
case("cmplx.abs edges", {"re": torch.tensor([0., -inf, 2e38, 1e-30]), "im": torch.tensor([0., 1., -2e38, 0.])}, by_numpy(np.abs), grads=[])

# stats
nan = math.nan
holes = torch.tensor([[1.5, nan, -2., 0.25], [nan, nan, nan, nan], [3., 1., 3., -1.], [nan, 2., nan, nan]])
known = lambda x: ~torch.isnan(x)
def nanvar(x, c):
    n, k = known(x).sum(1), known(x)
    m = torch.where(k, x, 0.).sum(1) / n.clamp(min=1)
    d = torch.where(k, x - m[:, None], 0.)
    return (d * d).sum(1) / torch.where(n > c, n - c, nan)
assert np.allclose(nanvar(holes, 0).numpy(), np.nanvar(holes.numpy(), 1), equal_nan=True) and np.allclose(nanvar(holes, 1).numpy(), np.nanvar(holes.numpy(), 1, ddof=1), equal_nan=True)
two = holes[[0, 2]]
case("stats.nan_sum", {"x": holes}, lambda x: torch.nansum(x, 1))
case("stats.nan_mean", {"x": holes}, lambda x: torch.nanmean(x, 1), grads=[])
case("stats.nan_mean two", {"x": two}, lambda x: torch.nanmean(x, 1))
case("stats.nan_var", {"x": holes}, lambda x: nanvar(x, 1), grads=[])
case("stats.nan_var two", {"x": two}, lambda x: nanvar(x, 0))
case("stats.nan_std two", {"x": two}, lambda x: nanvar(x, 1).sqrt())
case("stats.nan_min", {"x": holes}, lambda x: torch.as_tensor(np.nanmin(x.numpy(), 1)), grads=[])
case("stats.nan_max", {"x": holes}, lambda x: torch.as_tensor(np.nanmax(x.numpy(), 1)), grads=[])
case("stats.nan_max two", {"x": two}, lambda x: torch.where(known(x), x, -inf).amax(1), second=False)
case("stats.nan_sum all", {"x": holes}, lambda x: torch.nansum(x))
case("stats.cov", {"x": R(3, 5)}, lambda x: torch.cov(x, correction=1))
case("stats.corr_coef", {"x": R(3, 5)}, torch.corrcoef, second=False)
for p in (2., 1., 3., inf, 0.):
    case(f"stats.cdist {p:g}", {"x": R(2, 3, 4), "y": R(2, 2, 4)}, lambda x, y, p=p: (torch.cdist(x, y, p, compute_mode="donot_use_mm_for_euclid_dist") if p != 2 else (x[:, :, None] - y[:, None]).norm(dim=-1)), second=p in (2., 3.))
same_rows = R(2, 3)
case("stats.cdist equal", {"x": same_rows, "y": same_rows[:1].clone()}, lambda x, y: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"), second=False)
x = torch.tensor([[3., 1., 2., 1.], [0., nan, -1., 4.]])
case("stats.kth_smallest", {"x": x}, lambda x: [torch.sort(x, dim=1, stable=True)[0][:, 1], torch.sort(x, dim=1, stable=True)[1][:, 1]], grads=["x"], second=False)
case("stats.arg_partition", {"x": x}, lambda x: torch.argsort(x, dim=1, stable=True))

# losses
def sign(*s): return torch.where(torch.rand(*s) < 0.5, -1., 1.)
a, b, c = R(4, 3), R(4, 3), R(4, 3)
t = lambda **k: dict(anchor=a, positive=b, negative=c)
case("losses.triplet_margin", t(), lambda anchor, positive, negative: F.triplet_margin_loss(anchor, positive, negative))
case("losses.triplet_margin swap", t(), lambda anchor, positive, negative: F.triplet_margin_loss(anchor, positive, negative, margin=2., p=3, swap=True, reduction="sum"), second=False)
case("losses.margin_ranking", {"x": R(6), "y": R(6), "target": sign(6)}, lambda x, y, target: F.margin_ranking_loss(x, y, target, margin=0.5, reduction="none"), second=False)
case("losses.hinge_embedding", {"x": R(6), "target": sign(6)}, lambda x, target: F.hinge_embedding_loss(x, target), grads=["x"], second=False)
case("losses.cosine_embedding", {"x": R(4, 3), "y": R(4, 3), "target": torch.tensor([1., -1., -1., 1.])}, lambda x, y, target: F.cosine_embedding_loss(x, y, target, margin=0.25), grads=["x", "y"])
case("losses.soft_margin", {"x": R(6), "target": sign(6)}, lambda x, target: F.soft_margin_loss(x, target), grads=["x"])
case("losses.gaussian_nll", {"x": R(6), "target": R(6), "variance": R(6).abs() + 0.125}, lambda x, target, variance: F.gaussian_nll_loss(x, target, variance))
case("losses.gaussian_nll full", {"x": R(3), "target": R(3), "variance": torch.tensor([0.25, 2., 1e-3]).float().double()}, lambda x, target, variance: F.gaussian_nll_loss(x, target, variance, full=True, eps=1e-2, reduction="sum"), second=False)
case("losses.poisson_nll", {"x": R(6), "target": R(6).abs() * 4}, lambda x, target: F.poisson_nll_loss(x, target))
case("losses.poisson_nll full", {"x": R(6).abs() + 0.25, "target": torch.tensor([0., 0.5, 1., 2., 3.5, 7.])}, lambda x, target: F.poisson_nll_loss(x, target, log_input=False, full=True, reduction="none"), grads=["x"])
probabilities = torch.softmax(R(3, 4), 1).float().double(); probabilities[0, 1] = 0
case("losses.kl_div", {"x": R(3, 4), "target": probabilities}, lambda x, target: F.kl_div(x, target, reduction="batchmean"), grads=["x"])
case("losses.kl_div log", {"x": R(3, 4), "target": R(3, 4)}, lambda x, target: F.kl_div(x, target, log_target=True, reduction="sum"))

cases.extend(eig.cases)
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "functions.json"), "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
