"""Writes large.json: logarithms of densities and divergences of large and small parameters, by mpmath (1.3.0) from numbers
that are floats of 32 bits.

Densities and divergences are those of the definitions.
"slack" is by how much a value changes if each number, or product of two, is off by half a unit of the last place of f32.
Run with mpmath and NumPy installed: python large.py > large.json
"""
import json

import numpy as np
from mpmath import mp, mpf, digamma, log, loggamma

mp.dps = 50
HALF = mpf(2) ** -24


def f32(x):
    return [mpf(float(np.float32(v))) for v in x]


def gamma(p, x):
    (a, r), (x,) = p, x
    return a * log(r) + (a - 1) * log(x) - r * x - loggamma(a), abs(a - 1 - r * x) * HALF


def dirichlet(p, x):
    n = sum(p)
    value = loggamma(n) + sum((a - 1) * log(v) - loggamma(a) for a, v in zip(p, x))
    return value, sum(abs(a - 1 - n * v) for a, v in zip(p, x)) * HALF


def beta(p, x):
    (a, b), (x,) = p, x
    return dirichlet(p, [x, 1 - x])[0], abs(a - 1 - (a + b - 2) * x) / (1 - x) * HALF


def student(p, x):
    (v, m, s), (x,) = p, x
    z = ((x - m) / s) ** 2
    return loggamma((v + 1) / 2) - loggamma(v / 2) - log(v * mp.pi) / 2 - log(s) - (v + 1) / 2 * log(1 + z / v), mpf(0)


def poisson(p, x):
    (m,), (k,) = p, x
    return k * log(m) - m - loggamma(k + 1), mpf(0)


def binomial(p, x):
    (n, q), (k,) = p, x
    value = loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1) + k * log(q) + (n - k) * log(1 - q)
    return value, abs(k - n * q) / (1 - q) * HALF


def multinomial(p, k):
    n = p[0]
    total = log(sum(mp.exp(v) for v in p[1:]))
    value = loggamma(n + 1) + sum(c * (v - total) - loggamma(c + 1) for c, v in zip(k, p[1:]))
    return value, sum(abs(c - n * mp.exp(v - total)) * (1 + abs(v - total)) for c, v in zip(k, p[1:])) * HALF


def kl_gamma(p, q):
    (a, r), (c, s) = p, q
    value = (a - c) * digamma(a) - loggamma(a) + loggamma(c) + c * (log(r) - log(s)) + a * (s - r) / r
    return value, abs(c - a * s / r) * HALF


def kl_dirichlet(p, q):
    n, m = sum(p), sum(q)
    value = loggamma(n) - loggamma(m) + sum(loggamma(c) - loggamma(a) + (a - c) * (digamma(a) - digamma(n)) for a, c in zip(p, q))
    return value, sum(abs(c - a * m / n) for a, c in zip(p, q)) * HALF


def kl_poisson(p, q):
    (a,), (c,) = p, q
    return a * log(a / c) + c - a, mpf(0)


DENSITIES = [
    ("gamma", gamma, [
        ([1e6, 1], [1e6]), ([1e6, 1], [1.002e6]), ([1e6, 3e3], [333]), ([1e4, 1], [1e4]), ([1e4, 1], [9700]), ([1e4, 0.3], [34000]), ([300, 2], [149]), ([1e4, 1], [3e4]),
        ([11, 1], [12]), ([2, 1], [0.9]), ([1.99, 1], [0.9]), ([1e-3, 1], [1e-20]), ([1e-3, 2], [0.5]), ([50, 1], [1e-20]), ([3e7, 1], [3e7]),
    ]),
    ("beta", beta, [
        ([2e4, 3e4], [0.4]), ([2e4, 3e4], [0.405]), ([1e6, 2e6], [0.3334]), ([3, 1e6], [3e-6]), ([1e6, 0.5], [0.999999]), ([9, 2e4], [4e-4]), ([1.5, 1e4], [1e-4]),
        ([1e-3, 1e-3], [0.3]), ([1e-3, 20], [1e-10]), ([2e4, 3e4], [0.1]),
    ]),
    ("dirichlet", dirichlet, [  # of sum 1, exactly
        ([1e5, 3e5, 7], [0.25, 0.75 - 2**-16, 2**-16]), ([2e4, 3e4, 5e4], [0.203125, 0.296875, 0.5]), ([1e-3, 1e-3, 1e-3], [0.1875, 0.3125, 0.5]),
        ([5, 0.5, 1e4], [2**-11, 2**-14, 1 - 2**-11 - 2**-14]),
    ]),
    ("studentT", student, [([1e4, 0, 1], [2]), ([1e6, 0.5, 2], [-3]), ([1e-3, 0, 1], [2]), ([37, 0, 1], [0.3])]),
    ("poisson", poisson, [([1e4], [1e4]), ([1e4], [10123]), ([1e6], [997000]), ([1e7], [1e7]), ([1e4], [0]), ([1e4], [3]), ([1e-3], [0]), ([1e-3], [2]), ([12.5], [11])]),
    ("binomial", binomial, [([2e4, 0.3], [6000]), ([2e4, 0.3], [6100]), ([2e4, 0.5], [2e4]), ([1e6, 1e-3], [1010]), ([1e6, 0.999], [999000]), ([1e6, 0.25], [250500]), ([7, 1e-3], [0]), ([7, 1e-3], [3]), ([0, 0.3], [0])]),
    ("multinomial", multinomial, [([2e4, 0.3, -1.2, 0.9, 0], [5130, 1130, 9390, 4350]), ([2e4, 0, -200, 0], [1e4, 1, 9999]), ([1e6, 0, -12, 0], [5e5, 2, 499998]), ([0, 0.3, -1.2], [0, 0])]),
]
DIVERGENCES = [
    ("gamma", kl_gamma, [
        ([1e4, 1], [1.01e4, 1]), ([1e6, 2], [1.001e6, 2.001]), ([1e6, 1], [1e6, 1.0001]), ([9, 1], [9.1, 1]), ([1e-3, 1], [2e-3, 1.5]), ([1e-3, 1], [1e4, 1]), ([1e4, 1], [2, 3]),
        ([2.5, 1], [2.51, 1]),
    ]),
    ("beta", kl_dirichlet, [([2e4, 3e4], [2.02e4, 3e4]), ([1e6, 2e6], [1e6, 2.01e6]), ([1e-3, 5], [2e-3, 4]), ([9, 11], [9.1, 11])]),
    ("dirichlet", kl_dirichlet, [([1e5, 3e5, 7], [1.01e5, 3e5, 8]), ([1e-3, 2, 3e4], [1e-2, 2.5, 3e4])]),
    ("poisson", kl_poisson, [([1e4], [1.001e4]), ([1e7], [1.0001e7]), ([1e-3], [1e-2])]),
]
rows = []
for table, key in ((DENSITIES, "x"), (DIVERGENCES, "q")):
    for name, f, cases in table:
        for p, x in cases:
            p, x = f32(p), f32(x)
            value, slack = f(p, x)
            rows.append({"name": name, "parameters": [float(v) for v in p], key: [float(v) for v in x], "value": float(value), "slack": float(slack)})
print("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]")
