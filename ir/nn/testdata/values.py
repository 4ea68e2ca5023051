"""Writes torch.json: results and gradients of PyTorch's layers, for the tests of package nn.

    python -m venv v && v/bin/pip install torch && v/bin/python values.py

The weights are stored as package nn lays them out: matrices [in, out], convolutions [window..., in, out]. The
gradients are those of sum(y * r) over all results, with r the stored numbers. Layers that torch.nn lacks (grouped
queries with rotary positions, mixtures of experts, Mamba, LoRA) are written out below in plain operations.
"""
import json, math, os, sys
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
cases = []

def mat(w): return w.detach().transpose(0, 1)
def conv(w):  # [out, in, window...]
    return w.detach().permute(*range(2, w.dim()), 1, 0)
def convt(w):  # [in, out, window...]
    return w.detach().permute(*range(2, w.dim()), 0, 1)
def same(w): return w.detach()
def last(x): return x.detach().movedim(1, -1) if x.dim() > 2 else x.detach()

def tensor(x):
    x = x.detach().contiguous()
    if x.dtype in (torch.int64, torch.bool): return {"s": list(x.shape), "i": x.flatten().int().tolist()}
    return {"s": list(x.shape), "d": [float("%.8g" % v) for v in x.flatten().tolist()]}

def case(name, inputs, params, f, out=same, io=same, states=None):
    """inputs: name -> tensor as torch takes it; params: name -> (tensor, layout); f() -> results."""
    for x in inputs.values():
        if x.dtype == torch.float32: x.requires_grad_()
    ys = f()
    ys = list(ys) if isinstance(ys, (tuple, list)) else [ys]
    rs = [torch.randn_like(y) for y in ys]
    sum((y * r).sum() for y, r in zip(ys, rs)).backward()
    c = {"name": name, "inputs": {}, "params": {}, "grads": {}}
    lay = lambda x, i: io(x) if i else x
    for k, x in inputs.items():
        c["inputs"][k] = tensor(io(x))
        if x.grad is not None: c["grads"][k] = tensor(io(x.grad))
    for k, (p, l) in params.items():
        c["params"][k] = tensor(l(p))
        if p.grad is not None: c["grads"][k] = tensor(l(p.grad))
    c["outputs"] = [tensor(out(y)) for y in ys]
    c["weights"] = [tensor(out(r)) for r in rs]
    if states: c["states"] = {k: tensor(v) for k, v in states().items()}
    cases.append(c)

def R(*s): return torch.randn(*s)
def spread(m):  # biases and scales away from 0 and 1
    for p in m.parameters():
        if p.dim() == 1: nn.init.normal_(p, 0.5, 0.5)
    return m

# Linear, embedding
m = nn.Linear(4, 3); x = R(2, 4)
case("linear", {"x": x}, {"linear0/weight": (m.weight, mat), "linear0/bias": (m.bias, same)}, lambda: m(x))
m2 = nn.Embedding(5, 3); ids = torch.tensor([[0, 4, 4], [2, 1, 0]])
case("embedding", {"ids": ids}, {"embedding0/weight": (m2.weight, same)}, lambda: m2(ids))
m3 = nn.Linear(4, 3); A, B = nn.Parameter(R(2, 4)), nn.Parameter(R(3, 2)); xl = R(2, 4)
m3.requires_grad_(False)
case("lora", {"x": xl}, {"linear0/weight": (m3.weight, mat), "linear0/bias": (m3.bias, same), "linear0/lora_A/weight": (A, mat), "linear0/lora_B/weight": (B, mat)},
     lambda: m3(xl) + (16 / 2) * F.linear(F.linear(xl, A), B))

# Convolutions
def convolution(name, m, x, first=False):
    spread(m)
    l = convt if "transpose" in name else conv
    kind = "conv_transpose0/" if "transpose" in name else "conv0/"
    io = same if first else last
    params = {kind + "weight": (m.weight, l)}
    if m.bias is not None: params[kind + "bias"] = (m.bias, same)
    case(name, {"x": x}, params, lambda: m(x), out=io, io=io)
convolution("conv1d", nn.Conv1d(3, 4, 3, padding=2, dilation=2), R(2, 3, 7))
convolution("conv2d", nn.Conv2d(2, 4, 3, stride=2, padding=1), R(2, 2, 5, 6))
convolution("conv2d groups", nn.Conv2d(4, 6, (2, 3), groups=2, dilation=(1, 2), bias=False), R(1, 4, 5, 6))
convolution("conv2d same", nn.Conv2d(2, 3, 4, padding="same"), R(1, 2, 5, 5))
convolution("conv2d channels first", nn.Conv2d(2, 3, 3, padding=1), R(2, 2, 4, 5), True)
convolution("conv3d", nn.Conv3d(2, 3, 2), R(1, 2, 3, 4, 3))
convolution("conv_transpose1d", nn.ConvTranspose1d(3, 2, 3, stride=2), R(2, 3, 4))
convolution("conv_transpose2d", nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), R(1, 4, 3, 3))
convolution("conv_transpose2d channels first", nn.ConvTranspose2d(2, 3, 2, stride=2), R(1, 2, 3, 2), True)
convolution("conv_transpose3d", nn.ConvTranspose3d(2, 3, 2, dilation=2), R(1, 2, 2, 3, 2))

# Pools
for name, f, x in [
    ("max_pool", lambda x: F.max_pool2d(x, 3, stride=2, padding=1), R(1, 2, 5, 6)),
    ("avg_pool", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), R(1, 2, 5, 6)),
    ("avg_pool exclude", lambda x: F.avg_pool2d(x, 2, padding=1, count_include_pad=False), R(1, 2, 4, 4)),
    ("max_pool1d", lambda x: F.max_pool1d(x, 2), R(2, 2, 5)),
    ("global_avg_pool", lambda x: x.mean((2, 3)), R(2, 3, 2, 4)),
]:
    case(name, {"x": x}, {}, lambda x=x, f=f: f(x), out=last, io=last)

# Norms
def wb(scope, m):
    return {scope + "/" + k: (p, same) for k, p in m.named_parameters()}
def normed(name, scope, m, x, io=same):
    spread(m)
    case(name, {"x": x}, wb(scope, m), lambda: m(x), out=io, io=io)
normed("layer_norm", "layer_norm0", nn.LayerNorm(5), R(2, 3, 5))
normed("rms_norm", "rms_norm0", nn.RMSNorm(5, eps=1e-6), R(2, 3, 5))
normed("group_norm", "group_norm0", nn.GroupNorm(2, 4), R(2, 4, 3), last)
normed("group_norm channels first", "group_norm0", nn.GroupNorm(2, 4), R(2, 4, 2, 2))
normed("instance_norm", "instance_norm0", nn.InstanceNorm2d(3, affine=True), R(2, 3, 2, 3), last)
bn = spread(nn.BatchNorm2d(3)); bn.running_mean.normal_(); bn.running_var.uniform_(0.5, 2)
before = {"batch_norm0/running_mean": bn.running_mean.clone(), "batch_norm0/running_var": bn.running_var.clone()}
xb = R(2, 3, 2, 2)
case("batch_norm training", {"x": xb}, {**wb("batch_norm0", bn), **{k: (v, same) for k, v in before.items()}}, lambda: bn(xb), out=last, io=last,
     states=lambda: {"batch_norm0/running_mean": bn.running_mean, "batch_norm0/running_var": bn.running_var})
bn2 = spread(nn.BatchNorm1d(3)).eval(); bn2.running_mean.normal_(); bn2.running_var.uniform_(0.5, 2); xb2 = R(4, 3)
case("batch_norm inference", {"x": xb2}, {**wb("batch_norm0", bn2), "batch_norm0/running_mean": (bn2.running_mean, same), "batch_norm0/running_var": (bn2.running_var, same)}, lambda: bn2(xb2))

# Attention
def mha(scope, m):
    return {scope + "/in_proj_weight": (m.in_proj_weight, mat), scope + "/in_proj_bias": (m.in_proj_bias, same),
            scope + "/out_proj/weight": (m.out_proj.weight, mat), scope + "/out_proj/bias": (m.out_proj.bias, same)}
def hidden(t): return torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
at = spread(nn.MultiheadAttention(6, 2, batch_first=True)); xa = R(2, 4, 6)
case("attention", {"x": xa}, mha("attention0", at), lambda: at(xa, xa, xa, need_weights=False)[0])
at2 = spread(nn.MultiheadAttention(6, 3, batch_first=True)); xa2 = R(1, 5, 6)
case("attention causal", {"x": xa2}, mha("attention0", at2), lambda: at2(xa2, xa2, xa2, attn_mask=hidden(5), need_weights=False)[0])
at3 = spread(nn.MultiheadAttention(4, 2, kdim=3, vdim=3, batch_first=True)); xa3, ctx = R(2, 3, 4), R(2, 5, 3)
parts = {}
for i, n in enumerate("qkv"):
    w = getattr(at3, n + "_proj_weight")
    parts["attention0/%s_proj/weight" % n] = (w, mat)
part = lambda i: (lambda p: p.detach().chunk(3)[i])
biases = {"attention0/%s_proj/bias" % n: (at3.in_proj_bias, part(i)) for i, n in enumerate("qkv")}
case("attention context", {"x": xa3, "context": ctx}, {**parts, **biases, "attention0/out_proj/weight": (at3.out_proj.weight, mat), "attention0/out_proj/bias": (at3.out_proj.bias, same)},
     lambda: at3(xa3, ctx, ctx, need_weights=False)[0])

def rotated(x, base=10000.0):  # [..., t, d], pairs of halves
    t, d = x.shape[-2:]
    ang = torch.arange(t)[:, None] * base ** (-2 * torch.arange(d // 2) / d)
    u, v = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([u * ang.cos() - v * ang.sin(), v * ang.cos() + u * ang.sin()], -1)
def heads(x, h): return x.unflatten(-1, (h, -1)).transpose(1, 2)
P = lambda *s: nn.Parameter(R(*s) * 0.5)
wq, wk, wv, wo, xg = P(8, 8), P(4, 8), P(4, 8), P(8, 8), R(1, 5, 8)
def grouped():
    q, k, v = heads(F.linear(xg, wq), 4), heads(F.linear(xg, wk), 2), heads(F.linear(xg, wv), 2)
    i, j = torch.arange(5)[:, None], torch.arange(5)[None]
    seen = (j <= i) & (i - j < 3)
    y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, attn_mask=seen, enable_gqa=True)
    return F.linear(y.transpose(1, 2).flatten(2), wo)
case("attention grouped", {"x": xg}, {"attention0/q_proj/weight": (wq, mat), "attention0/k_proj/weight": (wk, mat), "attention0/v_proj/weight": (wv, mat), "attention0/out_proj/weight": (wo, mat)}, grouped)

# Transformers
def encoder(scope, m):
    d = mha(scope + "/self_attn", m.self_attn)
    if hasattr(m, "multihead_attn"):
        a = m.multihead_attn
        for i, n in enumerate("qkv"):
            d[scope + "/multihead_attn/%s_proj/weight" % n] = (a.in_proj_weight, lambda p, i=i: mat(p.detach().chunk(3)[i]))
            d[scope + "/multihead_attn/%s_proj/bias" % n] = (a.in_proj_bias, part(i))
        d[scope + "/multihead_attn/out_proj/weight"] = (a.out_proj.weight, mat)
        d[scope + "/multihead_attn/out_proj/bias"] = (a.out_proj.bias, same)
    for n in ("linear1", "linear2"):
        d["%s/%s/weight" % (scope, n)] = (getattr(m, n).weight, mat); d["%s/%s/bias" % (scope, n)] = (getattr(m, n).bias, same)
    for n in ("norm1", "norm2", "norm3"):
        if hasattr(m, n):
            d["%s/%s/weight" % (scope, n)] = (getattr(m, n).weight, same); d["%s/%s/bias" % (scope, n)] = (getattr(m, n).bias, same)
    return d
t1 = spread(nn.TransformerEncoderLayer(4, 2, 6, dropout=0, activation="gelu", norm_first=True, batch_first=True)); xt = R(1, 3, 4)
case("transformer", {"x": xt}, encoder("transformer_block0", t1), lambda: t1(xt, src_mask=hidden(3), is_causal=True))
t2 = spread(nn.TransformerEncoderLayer(4, 2, 6, dropout=0, activation="relu", batch_first=True)); xt2 = R(2, 3, 4)
case("transformer post", {"x": xt2}, encoder("transformer_block0", t2), lambda: t2(xt2))
t3 = spread(nn.TransformerDecoderLayer(4, 2, 6, dropout=0, activation="relu", norm_first=True, batch_first=True)); xt3, ct3 = R(1, 3, 4), R(1, 2, 4)
case("transformer context", {"x": xt3, "context": ct3}, encoder("transformer_block0", t3), lambda: t3(xt3, ct3, tgt_mask=hidden(3), tgt_is_causal=True))

# Recurrent layers
def recurrent(name, m, x, io=same):
    scope = name.split()[0] + "0/"
    def f():
        y, s = m(x)
        return (y, *s) if isinstance(s, tuple) else (y, s)
    case(name, {"x": x}, {scope + k: (p, mat if p.dim() == 2 else same) for k, p in m.named_parameters()}, f)
recurrent("lstm", nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True), R(2, 4, 3))
recurrent("gru", nn.GRU(3, 2, num_layers=2, batch_first=True), R(2, 4, 3))
recurrent("gru time first", nn.GRU(3, 2, bias=False), R(4, 2, 3))
recurrent("rnn relu", nn.RNN(3, 4, nonlinearity="relu", batch_first=True), R(2, 3, 3))

# Mixture of experts: softmax over all, the best two, normalised; SwiGLU experts.
E, D, H, T = 3, 4, 5, 6
g, w1, w2, xm = P(D, E), P(E, D, 2 * H), P(E, H, D), R(2, 3, D)
def moe():
    x = xm.reshape(T, D); p = (x @ g).softmax(-1)
    w, e = p.topk(2); w = w / w.sum(-1, keepdim=True)
    h = torch.einsum("td,edh->teh", x, w1); h = F.silu(h[..., :H]) * h[..., H:]
    y = torch.einsum("teh,ehd->ted", h, w2)
    y = (torch.gather(y, 1, e[..., None].expand(T, 2, D)) * w[..., None]).sum(1)
    f = F.one_hot(e, E).float().sum((0, 1)) / T  # all choices count, as in load_balancing_loss_func of transformers
    return y.reshape(2, 3, D), E * (f * p.mean(0)).sum()
case("moe", {"x": xm}, {"moe0/gate/weight": (g, same), "moe0/experts/w1": (w1, same), "moe0/experts/w2": (w2, same)}, moe)

# Mamba, after the reference implementation of mamba_ssm (selective_scan_ref).
d, n, k, r = 4, 3, 4, 2; c = 2 * d
ip, cw, cb, xp, dp, db = P(2 * c, d), P(c, 1, k), P(c), P(r + 2 * n, c), P(c, r), P(c)
Al, Dd, op, xs = nn.Parameter(torch.log(torch.arange(1., n + 1)).repeat(c, 1)), P(c), P(d, c), R(2, 5, d)
def mamba():
    u, z = F.linear(xs, ip).chunk(2, -1)
    u = F.silu(F.conv1d(F.pad(u.transpose(1, 2), (k - 1, 0)), cw, cb, groups=c).transpose(1, 2))
    dt, Bm, Cm = F.linear(u, xp).split([r, n, n], -1)
    dt = F.softplus(F.linear(dt, dp, db)); a = -Al.exp()
    h, ys = torch.zeros(2, c, n), []
    for t in range(5):
        h = (dt[:, t, :, None] * a).exp() * h + dt[:, t, :, None] * Bm[:, t, None] * u[:, t, :, None]
        ys.append((h * Cm[:, t, None]).sum(-1) + Dd * u[:, t])
    return F.linear(torch.stack(ys, 1) * F.silu(z), op)
case("mamba", {"x": xs}, {"mamba0/in_proj/weight": (ip, mat), "mamba0/conv1d/weight": (cw, conv), "mamba0/conv1d/bias": (cb, same), "mamba0/x_proj/weight": (xp, mat),
     "mamba0/dt_proj/weight": (dp, mat), "mamba0/dt_proj/bias": (db, same), "mamba0/A_log": (Al, same), "mamba0/D": (Dd, same), "mamba0/out_proj/weight": (op, mat)}, mamba)

# Sines and cosines of positions
xp2 = R(1, 3, 4)
def sinusoidal():
    ang = torch.arange(3)[:, None] * 10000.0 ** (-torch.arange(0, 4, 2) / 4)
    return xp2 + torch.stack([ang.sin(), ang.cos()], -1).flatten(1)
case("sinusoidal_encoding", {"x": xp2}, {}, sinusoidal)

# Padding by the image itself, pools with a rounded-up number of windows
for mode in ("reflect", "replicate", "circular"):
    convolution("conv2d " + mode, nn.Conv2d(2, 3, 3, padding=(1, 2), stride=(1, 2), padding_mode=mode), R(1, 2, 4, 5))
convolution("conv1d circular same", nn.Conv1d(2, 3, 4, padding="same", padding_mode="circular"), R(1, 2, 5))
for name, f, x in [
    ("max_pool ceil", lambda x: F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True), R(1, 2, 5, 6)),
    ("max_pool ceil short", lambda x: F.max_pool2d(x, 2, stride=3, padding=1, ceil_mode=True), R(1, 2, 6, 5)),
    ("avg_pool ceil", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True), R(1, 2, 6, 5)),
    ("avg_pool ceil exclude", lambda x: F.avg_pool2d(x, 3, stride=(2, 4), padding=1, ceil_mode=True, count_include_pad=False), R(1, 2, 6, 7)),
]:
    case(name, {"x": x}, {}, lambda x=x, f=f: f(x), out=last, io=last)

# Bags
bag = torch.tensor([[0, 4, 4], [2, 1, 0], [3, 3, 3]])
def bags(name, m, weights=None):
    inputs = {"ids": bag} if weights is None else {"ids": bag, "weights": weights}
    case(name, inputs, {"embedding0/weight": (m.weight, same)}, lambda: m(bag, per_sample_weights=weights))
bags("embedding_bag", nn.EmbeddingBag(5, 3))
bags("embedding_bag sum", nn.EmbeddingBag(5, 3, mode="sum"), R(3, 3))
bags("embedding_bag max", nn.EmbeddingBag(5, 3, mode="max"))
bags("embedding_bag padding", nn.EmbeddingBag(5, 3, padding_idx=3))
bags("embedding_bag max padding", nn.EmbeddingBag(5, 3, mode="max", padding_idx=3))

# A GRU whose reset gate multiplies the state before the product
gru, xg = nn.GRU(3, 2, batch_first=True, bidirectional=True), R(2, 4, 3)
def reset_before():
    h, ys, lasts = torch.zeros(2, 2), [], []
    for s in ("", "_reverse"):
        W, U, c, e = (getattr(gru, n + "_l0" + s) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, y = torch.zeros(2, 2), [None] * 4
        for t in (range(4) if not s else range(3, -1, -1)):
            a, p = F.linear(xg[:, t], W, c), F.linear(h, U[:4], e[:4])
            r, z = (a[:, :4] + p).sigmoid().chunk(2, 1)
            n = (a[:, 4:] + F.linear(r * h, U[4:], e[4:])).tanh()
            h = y[t] = (1 - z) * n + z * h
        ys.append(torch.stack(y, 1)); lasts.append(h)
    return torch.cat(ys, 2), torch.stack(lasts)
case("gru reset before", {"x": xg}, {"gru0/" + k: (p, mat if p.dim() == 2 else same) for k, p in gru.named_parameters()}, reset_before)

# Maxima over all positions, bounded scores
case("global_max_pool", {"x": (xp3 := R(2, 3, 2, 4))}, {}, lambda: xp3.amax((2, 3)), out=last, io=last)
case("softcap", {"x": (xc := R(2, 5) * 4)}, {}, lambda: 3 * torch.tanh(xc / 3))

# Two linear layers
def two(scope, a, c):
    return {"%s/%s/%s" % (scope, n, k): (p, mat if p.dim() == 2 else same) for n, m in (("linear1", a), ("linear2", c)) for k, p in m.named_parameters()}
ml = nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.Linear(5, 4)); xml = R(2, 3, 4)
case("mlp", {"x": xml}, two("mlp0", ml[0], ml[2]), lambda: ml(xml))
for name, act in (("swiglu", F.silu), ("geglu", F.gelu)):
    u, d2, xgl = nn.Linear(4, 10, bias=False), nn.Linear(5, 4, bias=False), R(3, 4)
    def gated(u=u, d2=d2, xgl=xgl, act=act):
        gate, value = u(xgl).chunk(2, -1)
        return d2(act(gate) * value)
    case("mlp " + name, {"x": xgl}, two("mlp0", u, d2), gated)
for name, act in (("gelu_tanh", nn.GELU("tanh")), ("relu2", lambda x: F.relu(x) ** 2), ("silu", F.silu), ("tanh", torch.tanh)):
    u, d2, xgl = nn.Linear(3, 4), nn.Linear(4, 3), R(2, 3)
    case("mlp " + name, {"x": xgl}, two("mlp0", u, d2), lambda u=u, d2=d2, xgl=xgl, act=act: d2(act(u(xgl))))

# A matrix of several for each row: number 3 is out of range
gw, gx, gi = P(3, 4, 2), R(5, 4), torch.tensor([2, 0, 3, 2, 1])
case("grouped_linear", {"x": gx, "groups": gi}, {"grouped_linear0/weight": (gw, same)},
     lambda: torch.einsum("mi,mio->mo", gx, torch.cat([gw, torch.zeros(1, 4, 2)])[gi]))

# Cross entropy of a linear layer
lm, lx, ll = nn.Linear(4, 6), R(2, 3, 4), torch.tensor([[0, 5, -100], [2, 2, 1]])
lp = {"linear0/weight": (lm.weight, mat), "linear0/bias": (lm.bias, same)}
case("linear_cross_entropy", {"x": lx, "labels": ll}, lp,
     lambda: F.cross_entropy(lm(lx).flatten(0, 1), ll.flatten(), ignore_index=-100, label_smoothing=0.1))
lm2, lx2, ll2 = nn.Linear(3, 4, bias=False), R(5, 3) * 3, torch.tensor([3, 0, 1, 1, 2])
case("linear_cross_entropy softcap", {"x": lx2, "labels": ll2}, {"linear0/weight": (lm2.weight, mat)},
     lambda: F.cross_entropy(2 * torch.tanh(lm2(lx2) / 2), ll2, reduction="sum"))

# Positions of a table, and a table that is also the last layer
pe, xpe = nn.Embedding(6, 4), R(2, 3, 4)
case("positional_embedding", {"x": xpe}, {"positional_embedding0/weight": (pe.weight, same)}, lambda: xpe + pe(torch.arange(3)))
te, ti = nn.Embedding(5, 3), torch.tensor([[0, 4, 4], [2, 1, 0]])
case("linear tied", {"ids": ti}, {"embedding0/weight": (te.weight, same)}, lambda: F.linear(te(ti).tanh(), te.weight))

# Attention without projections, with biases, bounds and norms of its scores
def joined(y): return y.transpose(1, 2).flatten(2)
qa, ka, va = R(2, 2, 3, 4), R(2, 2, 5, 4), R(2, 2, 5, 4); ma = R(5) > -0.8; ma[0] = True
case("attend", {"q": qa, "k": ka, "v": va, "mask": ma}, {}, lambda: joined(F.scaled_dot_product_attention(qa, ka, va, attn_mask=ma[None].expand(3, 5), scale=0.3)))
def separate(d, inner, kv):
    m = {n: nn.Linear(d, o) for n, o in (("q_proj", inner), ("k_proj", kv), ("v_proj", kv))}
    m["out_proj"] = nn.Linear(inner, d)
    return m
def named(scope, m): return {"%s/%s/%s" % (scope, n, k): (p, mat if p.dim() == 2 else same) for n, l in m.items() for k, p in l.named_parameters()}
def distances(h, t):
    i = torch.arange(t)
    return -(2.0 ** (-8 * (torch.arange(h) + 1.0) / h))[:, None, None] * (i[:, None] - i).abs()
ab, xab = separate(8, 8, 8), R(1, 5, 8)
case("attention alibi", {"x": xab}, named("attention0", ab), lambda: ab["out_proj"](joined(F.scaled_dot_product_attention(
    *(heads(ab[n](xab), 4) for n in ("q_proj", "k_proj", "v_proj")), attn_mask=distances(4, 5).masked_fill(hidden(5), -math.inf)))))
sc, xsc, bsc = separate(6, 6, 6), R(1, 4, 6) * 2, R(4, 4)
def capped():
    q, k, v = (heads(sc[n](xsc), 2) for n in ("q_proj", "k_proj", "v_proj"))
    s = 1.5 * torch.tanh(q @ k.mT / math.sqrt(3) / 1.5) + bsc
    return sc["out_proj"](joined(s.softmax(-1) @ v))
case("attention softcap", {"x": xsc, "mask": bsc}, named("attention0", sc), capped)
nq, xnq = separate(8, 12, 6), R(1, 4, 8)
nq["q_norm"], nq["k_norm"] = spread(nn.RMSNorm(6, eps=1e-6)), spread(nn.RMSNorm(6, eps=1e-6))
def normalised():  # GPT-J's pairs of neighbours, of the first four features
    def turned(x):
        ang = torch.arange(4)[:, None] * 500.0 ** (-2 * torch.arange(2) / 4)
        u, v = x[..., 0:4:2], x[..., 1:4:2]
        return torch.cat([torch.stack([u * ang.cos() - v * ang.sin(), v * ang.cos() + u * ang.sin()], -1).flatten(-2), x[..., 4:]], -1)
    q, k, v = heads(nq["q_proj"](xnq), 2), heads(nq["k_proj"](xnq), 1), heads(nq["v_proj"](xnq), 1)
    return nq["out_proj"](joined(F.scaled_dot_product_attention(turned(nq["q_norm"](q)), turned(nq["k_norm"](k)), v, is_causal=True, enable_gqa=True)))
case("attention normalised", {"x": xnq}, named("attention0", nq), normalised)

# A block of Llama
lb = {"self_attn/" + n: nn.Linear(8, o, bias=False) for n, o in (("q_proj", 8), ("k_proj", 4), ("v_proj", 4), ("out_proj", 8))}
lb.update({"linear1": nn.Linear(8, 12, bias=False), "linear2": nn.Linear(6, 8, bias=False), "norm1": spread(nn.RMSNorm(8, eps=1e-5)), "norm2": spread(nn.RMSNorm(8, eps=1e-5))})
xlb = R(1, 4, 8)
def llama():
    h = lb["norm1"](xlb)
    q, k, v = (heads(lb["self_attn/" + n](h), c) for n, c in (("q_proj", 4), ("k_proj", 2), ("v_proj", 2)))
    x = xlb + lb["self_attn/out_proj"](joined(F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)))
    gate, value = lb["linear1"](lb["norm2"](x)).chunk(2, -1)
    return x + lb["linear2"](F.silu(gate) * value)
case("transformer llama", {"x": xlb}, named("transformer_block0", lb), llama)

# Recurrent layers from given states
def begun(name, m, x, *states):
    scope = name.split()[0] + "0/"
    inputs = dict(zip(("x", "hidden", "cell"), (x, *states)))
    def f():
        y, s = m(x, states if len(states) > 1 else states[0])
        return (y, *s) if isinstance(s, tuple) else (y, s)
    case(name, inputs, {scope + k: (p, mat if p.dim() == 2 else same) for k, p in m.named_parameters()}, f)
begun("lstm begun", nn.LSTM(3, 2, num_layers=2, batch_first=True), R(2, 3, 3), R(2, 2, 2), R(2, 2, 2))
begun("gru begun", nn.GRU(3, 2, bidirectional=True, batch_first=True), R(2, 3, 3), R(2, 2, 2))
begun("rnn begun", nn.RNN(3, 4, bidirectional=True, batch_first=True), R(2, 3, 3), R(2, 2, 4))

# Norms and pools of images with channels first, and their other options
bn3 = spread(nn.BatchNorm2d(3, eps=1e-3, momentum=0.3)); xb3 = R(2, 3, 2, 2)
before3 = {"batch_norm0/running_mean": bn3.running_mean.clone(), "batch_norm0/running_var": bn3.running_var.clone()}
case("batch_norm channels first", {"x": xb3}, {**wb("batch_norm0", bn3), **{k: (v, same) for k, v in before3.items()}}, lambda: bn3(xb3),
     states=lambda: {"batch_norm0/running_mean": bn3.running_mean, "batch_norm0/running_var": bn3.running_var})
normed("layer_norm without bias", "layer_norm0", nn.LayerNorm(5, eps=1e-2, bias=False), R(2, 5))
normed("instance_norm channels first", "instance_norm0", nn.InstanceNorm1d(3), R(2, 3, 4))
case("max_pool channels first", {"x": (xp4 := R(1, 2, 6, 7))}, {}, lambda: F.max_pool2d(xp4, (2, 3), stride=(2, 1), dilation=2))

# Blocks: repeated ones, unrolled and with stacked parameters; chosen ones; experts chosen by number
sw, sb, xst = P(3, 4, 4), P(3, 4), R(2, 4)
def repeated():
    x = xst
    for i in range(3): x = x + (x @ sw[i] + sb[i]).tanh()
    return x
part1 = lambda i: (lambda p: p.detach()[i])
case("stack", {"x": xst}, {"h/%d/linear0/%s" % (i, k): (p, part1(i)) for i in range(3) for k, p in (("weight", sw), ("bias", sb))}, repeated)
xst, sw.grad, sb.grad = R(2, 4), None, None
case("stack scan", {"x": xst}, {"h/linear0/weight": (sw, same), "h/linear0/bias": (sb, same)}, repeated)
al, xal, on = nn.Linear(3, 3), R(4, 2, 3), torch.tensor([True, False, True, False])
case("active_blocks", {"x": xal, "active": on}, {"linear0/weight": (al.weight, mat), "linear0/bias": (al.bias, same)}, lambda: al(xal).tanh() * on[:, None, None])
ew, xe, we, ce = P(3, 4, 2), R(3, 4), R(3, 2), torch.tensor([[2, 0], [1, 2], [0, 1]])
case("chosen_experts", {"x": xe, "weights": we, "chosen": ce}, {"grouped_linear0/weight": (ew, same)},
     lambda: (torch.einsum("ti,tkio->tko", xe, ew[ce]) * we[..., None]).sum(1))

# Products of the embeddings of a recommender
di = R(2, 4, 3)
case("dot_interaction", {"x": di}, {}, lambda: (di @ di.mT)[(slice(None), *torch.tril_indices(4, 4, -1))])

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch.json")
with open(out, "w") as f:
    f.write('{"torch": %s,\n"cases": [\n' % json.dumps(torch.__version__))
    f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases))
    f.write("\n]}\n")
