"""Writes paper_steps.json: twenty steps of optimisers by the formulas of their papers, in float64.

Run with NumPy installed: python paper_steps.py > paper_steps.json
The loss is that of torch_steps.py, with its gradient and the diagonal of its Hessian, which
is all of it, in closed form.
"""
import json
import math

import numpy as np

STEPS, LR = 20, 0.05
A = np.array([0.5, 1.5, 2.0])
W = np.array([0.3, -1.2, 2.5])
V = np.array([[0.7, -0.4], [1.9, 0.0]])


def data(t):
    x = np.array([math.sin(t + i) for i in range(3)])
    y = np.array([[math.cos(t + 2 * i + j) for j in range(2)] for i in range(2)])
    return x, y


def run(update, before=None):
    """Losses, w and v after the steps; update(name, t, p, g, state) returns the new p."""
    p, state = {"w": W.copy(), "v": V.copy()}, {"w": {}, "v": {}}
    losses = []
    for t in range(1, STEPS + 1):
        x, y = data(t - 1)
        losses.append(float((A * (p["w"] - x) ** 2).sum() / 2 + np.cos(p["v"] * y).sum()))
        g = {"w": A * (p["w"] - x), "v": -y * np.sin(p["v"] * y)}
        h = {"w": A + 0 * p["w"], "v": -y * y * np.cos(p["v"] * y)}
        for name in p:
            if before is not None:
                before(t, h[name], state[name])
            p[name] = update(t, p[name], g[name], state[name])
    return {"losses": losses, "w": p["w"].tolist(), "v": p["v"].flatten().tolist()}


def adamw(t, p, g, s, b1, b2, decay, eps=1e-8):
    s["m"] = b1 * s.get("m", 0 * p) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0 * p) + (1 - b2) * g * g
    m, v = s["m"] / (1 - b1**t), s["v"] / (1 - b2**t)
    return p - LR * (m / (np.sqrt(v) + eps) + decay * p)


def mars(t, p, g, s, b1=0.95, b2=0.99, gamma=0.025, decay=0.01):
    """Yuan et al., MARS, algorithm 2 with the approximate gradient of algorithm 3."""
    c = g + gamma * b1 / (1 - b1) * (g - s.get("g", g))
    s["g"] = g
    c = c / max(1.0, np.linalg.norm(c))
    return adamw(t, p, c, s, b1, b2, decay)


def soap(t, p, g, s, b1=0.95, b2=0.95, every=3, decay=0.01, eps=1e-8):
    """Vyas et al., SOAP, algorithm 3, with Adam's bias corrections, and Adam's basis until the first turn."""
    if p.ndim != 2:
        return adamw(t, p, g, s, b1, b2, decay)
    ql, qr = s.get("ql", np.eye(p.shape[0])), s.get("qr", np.eye(p.shape[1]))
    turned = ql.T @ g @ qr
    s["m"] = b1 * s.get("m", 0 * p) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0 * p) + (1 - b2) * turned * turned
    m, v = ql.T @ s["m"] @ qr / (1 - b1**t), s["v"] / (1 - b2**t)
    step = ql @ (m / (np.sqrt(v) + eps)) @ qr.T
    s["l"] = b2 * s.get("l", np.zeros((p.shape[0],) * 2)) + (1 - b2) * g @ g.T
    s["r"] = b2 * s.get("r", np.zeros((p.shape[1],) * 2)) + (1 - b2) * g.T @ g
    if t % every == 0:
        s["ql"], s["qr"] = np.linalg.qr(s["l"] @ ql)[0], np.linalg.qr(s["r"] @ qr)[0]
    return p - LR * (step + decay * p)


def curvature(t, h, s, b2=0.99):
    if t % 2 == 1:  # every second step, from the first one on
        s["h"] = b2 * s.get("h", 0 * h) + (1 - b2) * h


def sophia(t, p, g, s, b1=0.96, gamma=0.05, eps=1e-12, decay=0.01):
    """Liu et al., Sophia, algorithm 3."""
    s["m"] = b1 * s.get("m", 0 * p) + (1 - b1) * g
    p = p - LR * decay * p
    return p - LR * np.clip(s["m"] / np.maximum(gamma * s["h"], eps), -1, 1)


def tangent(p, x):
    inner = p.T @ x
    return x - p @ (inner + inner.T) / 2


def stiefel(t, p, g, s, momentum=0.9):
    """Absil, Mahony and Sepulchre, (3.35) and example 4.1.3, with the momentum of SGD."""
    if p.ndim != 2:
        return adamw(t, p, g, s, 0.9, 0.999, 0.01)
    s["m"] = tangent(p, momentum * s.get("m", 0 * p) + tangent(p, g))
    q, r = np.linalg.qr(p - LR * s["m"])
    return q * np.where(np.diag(r) < 0, -1, 1)


def kron(t, p, g, s, b1=0.9, rate=0.1, every=3, clip=1.1, decay=0.02, diagonal=()):
    """Li, Black Box Lie Group Preconditioners for SGD, with the mean over the probes, which are here all v of one element."""
    rms = lambda x: math.sqrt((x * x).mean())
    s["m"] = b1 * s.get("m", 0 * p) + (1 - b1) * g
    m = s["m"] / (1 - b1**t)
    shapes = p.shape if p.ndim == 2 else (p.size,)
    q = s.get("q") or [np.eye(n) * rms(m) ** (-0.5 / len(shapes)) for n in shapes]
    if (t - 1) % every == 0:
        if p.ndim == 2:
            a = q[0] @ m @ q[1].T
            gram = [a @ a.T, a.T @ a]
            probes = np.eye(p.size).reshape(p.size, *p.shape)
            b = [np.linalg.inv(q[0]).T @ v @ np.linalg.inv(q[1]) for v in probes]
            mean = [sum(x @ x.T for x in b), sum(x.T @ x for x in b)]
        else:
            gram, mean = [np.diag((q[0] @ m) ** 2)], [np.diag(np.diag(q[0]) ** -2.0)]
        for i, (x, y) in enumerate(zip(gram, mean)):
            if p.ndim != 2 or i in diagonal:
                x, y = np.diag(np.diag(x)), np.diag(np.diag(y))
            q[i] = q[i] - rate * np.triu(x - y) @ q[i] / np.abs(x + y).sum(1).max()
        if p.ndim == 2:
            balance = math.sqrt(np.abs(q[1]).max() / np.abs(q[0]).max())
            q = [q[0] * balance, q[1] / balance]
    s["q"] = q
    step = q[0].T @ q[0] @ m @ q[1].T @ q[1] if p.ndim == 2 else q[0] @ q[0] @ m
    return p - LR * (step * min(1, clip / rms(step)) + decay * p)


def kron_diagonal(t, p, g, s):
    return kron(t, p, g, s, every=1, clip=0.7, decay=0, diagonal=(0, 1))


print(json.dumps({"mars": run(mars), "soap": run(soap), "stiefel": run(stiefel), "sophia": run(sophia, curvature), "kron": run(kron), "kron diagonal": run(kron_diagonal)}, indent=1))
