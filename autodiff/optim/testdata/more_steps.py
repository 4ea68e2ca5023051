"""Writes more_steps.json: twenty steps of further optimisers, in float64.

Run with PyTorch, optax, pytorch_optimizer and schedulefree installed:
python more_steps.py > more_steps.json
The loss is that of torch_steps.py.
"""
import json
import math

import jax
import jax.numpy as jnp
import optax
import optax.contrib
import pytorch_optimizer as P
import schedulefree
import torch

jax.config.update("jax_enable_x64", True)

STEPS = 20
A = [0.5, 1.5, 2.0]
W = [0.3, -1.2, 2.5]
V = [[0.7, -0.4], [1.9, 0.0]]


def data(t):
    x = [math.sin(t + i) for i in range(3)]
    y = [[math.cos(t + 2 * i + j) for j in range(2)] for i in range(2)]
    return x, y


def by_torch(make, scale=1.0, each=None, value=None, closure=False):
    """Losses, w and v after the steps; each sees the parameters after every one."""
    a = torch.tensor(A, dtype=torch.float64)
    w = torch.tensor(W, dtype=torch.float64, requires_grad=True)
    v = torch.tensor(V, dtype=torch.float64, requires_grad=True)
    opt = make(w, v)
    losses = []
    for t in range(STEPS):
        x, y = (torch.tensor(z, dtype=torch.float64) for z in data(t))
        loss = (a * (w - x) ** 2).sum() / 2 + torch.cos(v * y).sum()
        opt.zero_grad()
        loss.backward()
        if value is not None:
            torch.nn.utils.clip_grad_value_([w, v], value)
        opt.step(*([lambda: loss] if closure else []))
        losses.append(loss.item())
        if each is not None:
            each(w, v)
    return {"losses": losses, "w": w.tolist(), "v": v.flatten().tolist()}


def by_optax(opt):
    p = {"w": jnp.array(W), "v": jnp.array(V)}
    state = opt.init(p)
    losses = []
    for t in range(STEPS):
        x, y = (jnp.array(z) for z in data(t))

        def loss(p):
            return (jnp.array(A) * (p["w"] - x) ** 2).sum() / 2 + jnp.cos(p["v"] * y).sum()

        value, g = jax.value_and_grad(loss)(p)
        u, state = opt.update(g, state, p)
        p = optax.apply_updates(p, u)
        losses.append(float(value))
    return {"losses": losses, "w": p["w"].tolist(), "v": p["v"].flatten().tolist()}


class Muon(torch.optim.Optimizer):
    """torch.optim.Muon, which iterates in bf16, in the type of the parameter."""

    def __init__(self, params, lr, momentum=0.95, decay=0.1):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(m, group["momentum"])
                x = x / x.norm().clamp(min=1e-7)
                for _ in range(5):
                    s = x @ x.T
                    x = torch.addmm(x, torch.addmm(s, s, s, beta=-4.775, alpha=2.0315), x, beta=3.4445)
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(x, alpha=-group["lr"])


class Both:
    def __init__(self, *opts):
        self.opts = opts

    def zero_grad(self):
        for o in self.opts:
            o.zero_grad()

    def step(self):
        for o in self.opts:
            o.step()


def schedule_free(w, v):
    opt = schedulefree.AdamWScheduleFree([w, v], lr=0.05, weight_decay=0.01)
    opt.train()
    return opt


mean = {}


def averaged(w, v):
    for name, p in (("w", w), ("v", v)):
        p = p.detach().clone().flatten()
        mean[name] = 0.9 * mean[name] + 0.1 * p if name in mean else p


def schedule(make, n):
    p = torch.zeros(1, requires_grad=True)
    opt = torch.optim.SGD([p], lr=0.1)
    s = make(opt)
    rates = []
    for _ in range(n):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    return rates


O, L = torch.optim, torch.optim.lr_scheduler
runs = {
    "adagrad": by_torch(lambda w, v: O.Adagrad([w, v], lr=0.05, lr_decay=0.01, weight_decay=0.01)),
    "rmsprop": by_torch(lambda w, v: O.RMSprop([w, v], lr=0.05)),
    "rmsprop centered": by_torch(lambda w, v: O.RMSprop([w, v], lr=0.05, momentum=0.5, centered=True, weight_decay=0.01)),
    "adadelta": by_torch(lambda w, v: O.Adadelta([w, v], lr=0.05, weight_decay=0.01)),
    "nadam": by_torch(lambda w, v: O.NAdam([w, v], lr=0.05, weight_decay=0.01)),
    "radam": by_torch(lambda w, v: O.RAdam([w, v], lr=0.05, weight_decay=0.01)),
    "adafactor": by_torch(lambda w, v: O.Adafactor([w, v], lr=0.05, weight_decay=0.01)),
    "muon": by_torch(lambda w, v: Both(Muon([v], lr=0.05), O.AdamW([w], lr=0.05))),
    "schedule free": by_torch(schedule_free),
    "lamb": by_optax(optax.lamb(0.05, weight_decay=0.01)),
    "lion": by_optax(optax.lion(0.05, weight_decay=0.01)),
    "groups": by_torch(lambda w, v: O.SGD([{"params": [w]}, {"params": [v], "lr": 0.025, "momentum": 0.9}], lr=0.05)),
    "clip value": by_torch(lambda w, v: O.SGD([w, v], lr=0.05), value=0.3),
    "average": by_torch(lambda w, v: O.SGD([w, v], lr=0.05), each=averaged),
}
runs.update({
    "amsgrad": by_torch(lambda w, v: O.Adam([w, v], lr=0.05, amsgrad=True, weight_decay=0.01)),
    "amsgrad decoupled": by_torch(lambda w, v: O.AdamW([w, v], lr=0.05, amsgrad=True)),
    "adamax": by_torch(lambda w, v: O.Adamax([w, v], lr=0.05, weight_decay=0.01)),
    "nadam decoupled": by_torch(lambda w, v: O.NAdam([w, v], lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)),
    "radam decoupled": by_torch(lambda w, v: O.RAdam([w, v], lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)),
    "dampening": by_torch(lambda w, v: O.SGD([w, v], lr=0.05, momentum=0.9, dampening=0.3)),
    "maximize": by_torch(lambda w, v: O.SGD([w, v], lr=0.05, momentum=0.9, weight_decay=0.1, maximize=True)),
    "lbfgs": by_torch(lambda w, v: O.LBFGS([w, v], lr=0.05, max_iter=1, history_size=4), closure=True),
    "adabelief": by_optax(optax.chain(
        optax.scale_by_belief(), optax.add_decayed_weights(0.01), optax.scale_by_learning_rate(0.05))),
    "lars": by_optax(optax.lars(0.05, weight_decay=0.01, trust_coefficient=0.1)),
    "prodigy": by_optax(optax.contrib.prodigy(0.05, estim_lr0=0.1, weight_decay=0.01)),
    "qhadamw": by_torch(lambda w, v: P.QHAdam(
        [w, v], lr=0.05, nus=(0.7, 0.9), weight_decay=0.01, weight_decouple=True)),
    "adan": by_torch(lambda w, v: P.Adan([w, v], lr=0.05, weight_decay=0.01)),
    "ademamix": by_torch(lambda w, v: P.AdEMAMix(
        [w, v], lr=0.05, weight_decay=0.01, weight_decouple=True, t_alpha_beta3=12)),
})
runs["average"].update({name: p.tolist() for name, p in mean.items()})
print(json.dumps({
    "runs": runs,
    "schedules": {
        "steps": schedule(lambda o: L.StepLR(o, 3, 0.5), 12),
        "exponential": schedule(lambda o: L.ExponentialLR(o, 0.9), 12),
        "polynomial": [float(optax.polynomial_schedule(0.1, 0.01, 2, 8)(t)) for t in range(12)],
        "cosine restarts": schedule(lambda o: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01), 22),
        "cosine cycles": schedule(lambda o: L.CosineAnnealingWarmRestarts(o, 4, 1, 0.01), 12),
        "one cycle": schedule(lambda o: L.OneCycleLR(o, 0.1, total_steps=12, cycle_momentum=False), 12),
    },
}, indent=1))
