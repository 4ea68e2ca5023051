"""Writes torch_steps.json: twenty steps of each optimiser, by PyTorch.

Run with PyTorch and optax installed: python torch_steps.py > torch_steps.json
The loss is sum(a*(w-x)**2)/2 + sum(cos(v*y)), with fresh x and y every step.
"""
import json
import math

import jax
import optax
import torch

jax.config.update("jax_enable_x64", True)

STEPS = 20
A = [0.5, 1.5, 2.0]
W = [0.3, -1.2, 2.5]
V = [[0.7, -0.4], [1.9, 0.0]]


def data(t, dtype):
    x = torch.tensor([math.sin(t + i) for i in range(3)], dtype=dtype)
    y = torch.tensor([[math.cos(t + 2 * i + j) for j in range(2)] for i in range(2)], dtype=dtype)
    return x, y


def run(make, dtype, rate=None, clip=None):
    a = torch.tensor(A, dtype=dtype)
    w = torch.tensor(W, dtype=dtype, requires_grad=True)
    v = torch.tensor(V, dtype=dtype, requires_grad=True)
    opt = make([w, v])
    losses = []
    for t in range(STEPS):
        x, y = data(t, dtype)
        if rate is not None:
            opt.param_groups[0]["lr"] = float(rate(t))
        loss = (a * (w - x) ** 2).sum() / 2 + torch.cos(v * y).sum()
        opt.zero_grad()
        loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_([w, v], clip)
        opt.step()
        losses.append(loss.item())
    return {"losses": losses, "w": w.tolist(), "v": v.flatten().tolist()}


def annealed(t):
    """The rate of torch's CosineAnnealingLR at step t."""
    p = torch.zeros(1, requires_grad=True)
    opt = torch.optim.SGD([p], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20, eta_min=0.01)
    for _ in range(t):
        opt.step()
        schedule.step()
    return opt.param_groups[0]["lr"]


O = torch.optim
CASES = {
    "sgd": dict(make=lambda p: O.SGD(p, lr=0.05)),
    "sgd decay": dict(make=lambda p: O.SGD(p, lr=0.05, weight_decay=0.1)),
    "sgd momentum": dict(make=lambda p: O.SGD(p, lr=0.05, momentum=0.9)),
    "sgd nesterov": dict(make=lambda p: O.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": dict(make=lambda p: O.Adam(p, lr=0.05)),
    "adam decay": dict(make=lambda p: O.Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)),
    "adamw": dict(make=lambda p: O.AdamW(p, lr=0.05)),
    "sgd clip": dict(make=lambda p: O.SGD(p, lr=0.05), clip=1.0),
    "adam clip": dict(make=lambda p: O.Adam(p, lr=0.05), clip=0.5),
    "sgd cosine": dict(make=lambda p: O.SGD(p, lr=0.1), rate=annealed),
}
WARM = optax.warmup_cosine_decay_schedule(0.0, 0.1, warmup_steps=5, decay_steps=20, end_value=0.01)

print(json.dumps({
    "f64": {name: run(dtype=torch.float64, **case) for name, case in CASES.items()},
    "f32": {name: run(dtype=torch.float32, **case) for name, case in CASES.items()},
    "warm": [float(WARM(t)) for t in range(25)],
    "cosine": [float(annealed(t)) for t in range(21)],
}, indent=1))
