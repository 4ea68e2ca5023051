"""Writes values.json: special functions and their derivatives at points that are floats of 32 bits, by mpmath.

Run with mpmath and NumPy installed: python values.py > values.json
"""
import json

import numpy as np
from mpmath import mp, mpf, log, exp, sqrt, erfc, erfinv, e1, ei, besselj, zeta, gammainc, betainc, diff, pi, inf, findroot, beta

mp.dps = 70


def ndtr(x):
    return erfc(-x / sqrt(2)) / 2


def ndtri(p):
    if p <= 0.5:
        start = sqrt(2) * erfinv(2 * p - 1) if p > 1e-3 else -sqrt(-2 * log(p))
        return findroot(lambda x: log(ndtr(x)) - log(p), start)
    return -ndtri(1 - p)


def lower(a, x):
    return gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return gammainc(a, x, inf, regularized=True)


def relent(x, y):
    return x * log(x / y)


def gamma_entropy(a):
    return a + mp.loggamma(a) + (1 - a) * mp.digamma(a)


def remainder(a):
    return mp.loggamma(a) - (a - mpf(1) / 2) * log(a) + a - log(2 * pi) / 2


def remainder_slope(a):
    return mp.digamma(a) - log(a) + 1 / (2 * a)


def log_beta(x, y):
    return mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y)


x = [1e-30, 1e-7, 0.01, 0.3, 0.7, 1, 1.5, 3, 20, 1e5]
pairs = ([1e-20, 0.1, 0.5, 1, 1.0001, 3, 1e4], [0.2, 0.1, 0.7, 1e-10, 1, 3.0003, 2])
a = [1e-3, 0.1, 0.5, 0.5, 1, 1, 2.5, 2.5, 7.9, 8.1, 8.1, 30, 30, 30, 100, 100, 100, 1, 5, 0.3]
at = [2, 1e-5, 0.3, 3, 1e-3, 20, 1, 9, 7, 8.5, 20, 15, 30, 60, 80, 101, 140, 1, 5.9, 1.2]
FUNCTIONS = {
    "entr": (lambda x: -x * log(x), [x]),
    "relEntr": (relent, pairs),
    "klDiv": (lambda x, y: relent(x, y) - x + y, ([0.1, 0.5, 1, 3, 20, 1e-10, 1e6, 1e6, 1e6, 3, 3, 8, 8, 1e-3], [0.9, 2, 1e-10, 7, 1, 1, 1.001e6, 999999, 1.28e6, 2.5, 2.3, 6, 10.5, 1.0001e-3])),
    "erfcx": (lambda x: exp(x * x) * erfc(x), [[-8.7, -3, -1, -0.1, -1e-10, 0, 1e-10, 0.1, 0.5, 1, 2, 3, 5, 10, 30, 1000, 1e10]]),
    "logNdtr": (lambda x: log(ndtr(x)), [[-1e4, -100, -20, -5, -1.01, -1, -0.99, -0.1, 0, 0.5, 1, 3, 5, 8]]),
    "ndtri": (ndtri, [[1e-30, 1e-10, 1e-4, 0.01, 0.1249, 0.1251, 0.3, 0.499, 0.5, 0.6, 0.874, 0.876, 0.99, 0.99999]]),
    "e1": (e1, [[1e-30, 1e-5, 0.1, 0.5, 0.99, 1, 1.01, 2, 5, 20, 80]]),
    "ei": (ei, [[-50, -3, -1, -0.1, -1e-10, 1e-10, 0.1, 0.3, 0.45, 1, 3, 7.9, 8.1, 15, 17, 31, 33, 80]]),
    "j0": (lambda x: besselj(0, x), [[0, 1e-5, -0.5, 1, 2.4, 5, 7.99, 8, 8.01, -20, 100, 1000.5]]),
    "j1": (lambda x: besselj(1, x), [[0, 1e-5, -0.5, 1, 2.4, 5, 7.99, 8, 8.01, -20, 100, 1000.5]]),
    "logBeta": (log_beta, ([1e-3, 0.5, 1e7, 2, 9, 5, 300, 8, 8, 7.9, 1e6, 3e6, 1e8, 20], [0.3, 1e6, 0.5, 2.5, 0.75, 12, 8, 8, 7.9, 1e4, 1e6, 1e5, 1e3, 1e20])),
    "gammaEntropy": (gamma_entropy, [[1e-3, 0.1, 0.5, 1, 2.5, 7.9, 9.9, 10, 10.1, 30, 1e3, 1e6, 1e12]]),
    "stirlingRemainder": (remainder, [[1e-20, 1e-3, 0.1, 0.5, 1, 1.5, 1.99, 2, 2.5, 5, 9, 30, 1e3, 1e6, 1e12]]),
    "stirlingRemainderSlope": (remainder_slope, [[1e-3, 0.1, 0.5, 1, 1.5, 1.99, 2, 2.5, 5, 9, 30, 1e3, 1e6, 1e12]]),
    "zeta": (zeta, ([1.001, 1.5, 2, 3, 3, 10, 30, 1.5], [1, 0.3, 1, 1e-3, 20, 2.5, 1.25, 1000])),
    "gammainc": (lower, (a, at)),
    "gammaincc": (upper, (a[2:], at[2:])),
    "betainc": (lambda a, c, x: betainc(a, c, 0, x, regularized=True), (
        [0.1, 0.5, 1, 2, 2, 5, 10, 30, 100, 0.3, 100], [0.1, 0.5, 3, 2, 7, 0.2, 10, 20, 90, 40, 3],
        [1e-4, 0.3, 0.9, 0.5, 0.01, 0.7, 0.55, 0.6, 0.52, 0.002, 0.99])),
}
out = {}
for name, (f, points) in FUNCTIONS.items():
    points = [[float(np.float32(v)) for v in column] for column in points]
    n = len(points)
    rows = list(zip(*[[mpf(v) for v in column] for column in points]))

    def slope(i, row):
        if name == "gammaincc" and i == 1 or name == "gammainc" and i == 1:
            s, v = row
            return (1 if name == "gammainc" else -1) * v ** (s - 1) * exp(-v) / mp.gamma(s)
        h = row[i] * mpf("1e-10") if row[i] else mpf("1e-10")
        g = lambda v: f(*[v if j == i else w for j, w in enumerate(row)])
        return (8 * (g(row[i] + h) - g(row[i] - h)) - (g(row[i] + 2 * h) - g(row[i] - 2 * h))) / (12 * h)

    out[name] = {
        "in": points,
        "out": [float(mp.re(f(*row))) for row in rows],
        "slopes": [[float(mp.re(slope(i, row))) for row in rows] for i in range(n)],
    }
print(json.dumps(out, indent=1))
