"""Writes extremes.json: distributions of large parameters and of narrow intervals, by mpmath (1.4.1) from parameters that are floats of 32 bits.

Densities and entropies are those of the definitions; moments of truncated distributions are quadratures.
Run with mpmath and NumPy installed: python extremes.py > extremes.json
"""
import json

import numpy as np
from mpmath import mp, mpf, digamma, exp, log, loggamma, pi, quad

mp.dps = 60


def f32(*x):
    return [mpf(float(np.float32(v))) for v in x]


def log_beta(x, y):
    return loggamma(x) + loggamma(y) - loggamma(x + y)


def student(p, x):
    v, m, s = p
    norm = log_beta(v / 2, mpf(1) / 2) + log(v) / 2 + log(s)
    entropy = (v + 1) / 2 * (digamma((v + 1) / 2) - digamma(v / 2)) + norm
    return {"logProb": [-norm - (v + 1) / 2 * log(1 + ((y - m) / s) ** 2 / v) for y in x], "entropy": entropy}


def gamma(p, x):
    a, r = p
    return {"entropy": a - log(r) + loggamma(a) + (1 - a) * digamma(a)}


def dirichlet(p, x):
    s = sum(p)
    norm = sum(loggamma(a) for a in p) - loggamma(s)
    return {"entropy": norm + (s - len(p)) * digamma(s) - sum((a - 1) * digamma(a) for a in p)}


def truncated(p, x):
    m, s, low, high = p
    at = lambda k, by=mpf(0): quad(lambda y: (y - by) ** k * exp(-((y - m) / s) ** 2 / 2), [low, high])
    mass, mean = at(0), at(1) / at(0)
    log_prob = lambda y: -((y - m) / s) ** 2 / 2 - log(mass)
    entropy = -quad(lambda y: exp(log_prob(y)) * log_prob(y), [low, high])
    return {"logProb": [log_prob(y) for y in x], "entropy": entropy, "mean": mean, "variance": at(2, mean) / mass}


CASES = {
    "studentT": (student, [[[1e6, 0.7, 1.3], [-3, 0.2, 4]], [[1e8, 0, 1], [0, 3]], [[0.05, 0, 1], [0, 9]]]),
    "gamma": (gamma, [[[1e6, 2], []], [[1e7, 3e6], []], [[1e-2, 1.7], []]]),
    "beta": (dirichlet, [[[1e6, 2e6], []], [[3, 1e6], []], [[0.3, 0.2], []]]),
    "dirichlet": (dirichlet, [[[1e5, 3e5, 7], []]]),
    "truncatedNormal": (truncated, [
        [[0.7, 1.3, 0.5, 0.501], [0.5, 0.5002, 0.501]], [[0.7, 1.3, 5, 5.00001], [5, 5.00001]], [[0, 1, 6, 6.1], [6, 6.03]],
        [[0, 1, -20, -19.95], [-20, -19.99]], [[0.7, 1.3, 0.1, 1.39], [0.2, 1.3]], [[0.7, 1.3, -0.1, 1.41], [0.2, 1.3]],
    ]),
}
rows = []
for name, (f, cases) in CASES.items():
    for p, x in cases:
        p, x = f32(*p), f32(*x)
        of = f(p, x)
        row = {"name": name, "parameters": [float(v) for v in p], "x": [float(v) for v in x]}
        rows.append(row | {k: [float(u) for u in v] if isinstance(v, list) else float(v) for k, v in of.items()})
print("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]")
