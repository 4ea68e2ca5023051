"""Writes torch_training.json: twenty steps of whole trainings, by PyTorch.

Run with PyTorch installed: python torch_training.py > torch_training.json
Names, layout ([in, out]) and initial values of the parameters are those of torch_test.go.
"""
import json
import math

import torch
import torch.nn.functional as F
from torch.optim import lr_scheduler as schedules
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STEPS, ROWS = 20, 6


def wave(shape, begin):
    n = math.prod(shape)
    return torch.tensor([math.sin(begin + 1.3 * i) for i in range(n)], dtype=torch.float32).reshape(shape)


def turned(p):
    """Weights of layers as [in, out]."""
    return p.detach().T if p.dim() > 1 else p.detach()


class Model(torch.nn.ModuleDict):
    """Layers by name. The parameters are numbered in the order of their names."""

    def __init__(self, layers):
        super().__init__(layers)
        with torch.no_grad():
            for k, (_, p) in enumerate(self.by_name()):
                turned(p).copy_(0.6 * wave(turned(p).shape, 1 + k))

    def by_name(self):
        return sorted((n.replace(".", "/"), p) for n, p in self.named_parameters())

    def values(self):
        out = {n: turned(p).flatten().tolist() for n, p in self.by_name()}
        return out | {n.replace(".", "/"): b.tolist() for n, b in self.named_buffers() if "num_batches" not in n}


def half(x):
    return x.half().float()


class HalfLinear(torch.autograd.Function):
    """Factors and results of products are f16, sums f32, as on a GPU; autocast on the CPU sums in f16, too."""

    @staticmethod
    def forward(ctx, x, w, bias):
        ctx.save_for_backward(x, w)
        return half(half(x) @ half(w)) + bias

    @staticmethod
    def backward(ctx, g):
        x, w = (half(v) for v in ctx.saved_tensors)
        g = half(g)
        return half(g @ w.T), half(x.T @ g), g.sum(0)


def linear(layer, x, dtype):
    return HalfLinear.apply(x, layer.weight.T, layer.bias) if dtype == torch.float16 else layer(x)


def classifier(norm):
    return Model({"linear0": torch.nn.Linear(4, 5), "norm": norm(5), "linear1": torch.nn.Linear(5, 3)})


def batch(t):
    return wave((ROWS, 4), t), torch.tensor([(t + i * i) % 3 for i in range(ROWS)])


def decayed(m, decay, **rest):
    """All matrices decay, other parameters do not; linear1 has half the rate."""
    groups = []
    for n, p in m.by_name():
        groups.append(dict(params=[p], lr=rest["lr"] * (0.5 if n == "linear1/weight" else 1), weight_decay=decay if p.dim() > 1 else 0))
    return groups


def train(norm, make, schedule=None, every=1, clip=None, value=None, average=None, smooth=0.0, dtype=None, factor=1.0):
    m = classifier(norm)
    opt = make(m)
    follow = schedule(opt) if schedule else None
    means = AveragedModel(m, multi_avg_fn=get_ema_multi_avg_fn(average)) if average else None
    scaler = torch.amp.GradScaler("cpu", growth_interval=4, enabled=dtype == torch.float16)
    losses, scales = [], []
    for t in range(STEPS):
        x, labels = batch(t)
        scales.append(scaler.get_scale())
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
            logits = linear(m["linear1"], F.gelu(m["norm"](linear(m["linear0"], x, dtype))), dtype)
        loss = F.cross_entropy(logits.float(), labels, label_smoothing=smooth) * factor
        scaler.scale(loss / every).backward()
        losses.append(loss.item())
        if (t + 1) % every:
            continue
        scaler.unscale_(opt)
        if value:
            torch.nn.utils.clip_grad_value_(m.parameters(), value)
        if clip:
            torch.nn.utils.clip_grad_norm_(m.parameters(), clip)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
        if follow:
            follow.step()
        if means:
            means.update_parameters(m)
    out = {"losses": losses, "values": m.values()}
    if means:
        out["averages"] = means.module.values()
    if dtype == torch.float16:
        out["doublings"] = [int(math.log2(s)) - 16 for s in scales]
    return out


def gan():
    """A critic and a generator, each with its Adam and schedule. They share a table of parameters, numbered together."""
    m = Model({"g0": torch.nn.Linear(2, 4), "g1": torch.nn.Linear(4, 3), "d0": torch.nn.Linear(3, 4), "d1": torch.nn.Linear(4, 1)})
    generate = lambda z: m["g1"](torch.tanh(m["g0"](z)))
    score = lambda x: m["d1"](F.leaky_relu(m["d0"](x), 0.2))
    of = lambda c: [p for n, p in m.by_name() if n.startswith(c)]
    critic, generator = torch.optim.Adam(of("d"), lr=0.02, betas=(0.5, 0.999)), torch.optim.Adam(of("g"), lr=0.01, betas=(0.5, 0.999))
    follow = schedules.OneCycleLR(generator, 0.01, total_steps=STEPS, pct_start=0.3, cycle_momentum=False)
    bce = F.binary_cross_entropy_with_logits
    losses = {"critic": [], "generator": []}
    for t in range(STEPS):
        real, z = 1 + 0.5 * wave((ROWS, 3), t), wave((ROWS, 2), 2 * t)
        loss = bce(score(real), torch.ones(ROWS, 1)) + bce(score(generate(z).detach()), torch.zeros(ROWS, 1))
        critic.zero_grad()
        loss.backward()
        critic.step()
        losses["critic"].append(loss.item())
        loss = bce(score(generate(z)), torch.ones(ROWS, 1))
        generator.zero_grad()
        loss.backward()
        generator.step()
        follow.step()
        losses["generator"].append(loss.item())
    return losses | {"values": m.values()}


layer, batches = torch.nn.LayerNorm, torch.nn.BatchNorm1d
O = torch.optim
runs = {
    "accumulation": train(layer, lambda m: O.AdamW(decayed(m, 0.1, lr=0.05)), lambda o: schedules.CosineAnnealingLR(o, 5, 0.0), every=4, clip=0.5, average=0.7),
    "statistics": train(batches, lambda m: O.Adam(m.parameters(), lr=0.05, weight_decay=0.02), lambda o: schedules.ExponentialLR(o, 0.9), every=2, average=0.9),
    "smoothing": train(layer, lambda m: O.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05), lambda o: schedules.StepLR(o, 6, 0.5), value=0.05, smooth=0.2),
    "f16": train(layer, lambda m: O.SGD(m.parameters(), lr=0.001, momentum=0.9), clip=20.0, dtype=torch.float16, factor=64.0),
    "bf16": train(layer, lambda m: O.AdamW(m.parameters(), lr=0.05), dtype=torch.bfloat16),
}
rounded = json.loads(json.dumps({"runs": runs, "gan": gan()}), parse_float=lambda s: float("%.8g" % float(s)))
print(json.dumps(rounded))
