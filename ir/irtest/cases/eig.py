"""The cases of cmplx.eig and cmplx.eigvals, by mpmath (1.4.1): mp.eig in the order and with the normalization of package ir/cmplx; gradients are differences at 50 digits.

Run with mpmath and NumPy installed: python eig.py replaces them in functions.json.
"""
import json
import os

import numpy as np
from mpmath import eig as decompose, matrix, mp, mpc, mpf, sqrt

mp.dps = 50
rng = np.random.default_rng(5)


def tensor(x):
    x = np.asarray(x)
    return {"d": "f32", "s": list(x.shape), "v": [float(f"{float(v):.9g}") for v in x.ravel()]}


def eig(x):
    """The parts of eigenvalues and eigenvectors of matrices [..., n, n]."""
    n = x.shape[-1]
    w, v = [], []
    for one in x.reshape(-1, n, n):
        values, vectors = decompose(matrix(one.tolist()))
        columns = []
        for k in range(n):
            c = [vectors[i, k] for i in range(n)]
            s = sum(c[i] / (i + sqrt(mpf(2))) for i in range(n))
            by = abs(s) / s / sqrt(sum(abs(z) ** 2 for z in c))
            columns.append([z * by for z in c])
        order = sorted(range(n), key=lambda k: (mp.nint(mp.re(values[k]) * mpf(10) ** 20), mp.im(values[k])))
        w.append([mpc(values[k]) for k in order])
        v.append([[columns[k][i] for k in order] for i in range(n)])
    w, v = np.array(w, object).reshape(x.shape[:-1]), np.array(v, object).reshape(x.shape)
    part = lambda f, a: np.vectorize(f, otypes=[object])(a)
    return [part(mp.re, w), part(mp.im, w), part(mp.re, v), part(mp.im, v)]


cases = []


def case(name, inputs, f, grads=True):
    inputs = {k: np.vectorize(mpf, otypes=[object])(v) for k, v in inputs.items()}
    ys = f(**inputs)
    c = {"name": name, "inputs": {k: tensor(v) for k, v in inputs.items()}, "outputs": [tensor(y) for y in ys]}
    if grads:
        ws = [np.round(rng.normal(size=y.shape) * 64) / 64 for y in ys]
        loss = lambda values: sum(sum(mpf(a) * b for a, b in zip(w.ravel().tolist(), y.ravel())) for w, y in zip(ws, f(**values)))
        c["weights"], c["grads"], h = [tensor(w) for w in ws], {}, mpf(10) ** -15
        for k, x in inputs.items():
            g = np.empty(x.shape, object)
            for i in np.ndindex(x.shape):
                step = np.zeros(x.shape, object)
                step[i] = h
                g[i] = (loss({**inputs, k: x + step}) - loss({**inputs, k: x - step})) / (2 * h)
            c["grads"][k] = tensor(g)
    cases.append(c)


def random(*shape):
    return np.round(rng.normal(size=shape) * 64) / 64


case("cmplx.eig", {"x": random(2, 3, 3)}, lambda x: eig(x))
case("cmplx.eig complex", {"re": random(4, 4), "im": random(4, 4)}, lambda re, im: eig(re + mpc(0, 1) * im))
case("cmplx.eigvals", {"x": random(5, 5)}, lambda x: eig(x)[:2])
edges = [np.roll(np.eye(3), 1, 1), np.zeros((3, 3)), 2 * np.eye(3), [[0.5, 1, 0], [0, 0.5, 1], [0, 0, 0.5]], [[-3, 0, 0], [5, 1, -2], [7, 2, 1]]]
values = [[(-1 - 1j * 3**0.5) / 2, (-1 + 1j * 3**0.5) / 2, 1], [0, 0, 0], [2, 2, 2], [0.5, 0.5, 0.5], [-3, 1 - 2j, 1 + 2j]]
case("cmplx.eigvals edges", {"x": np.array(edges)}, lambda x: [np.real(values), np.imag(values)], grads=False)

if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.json")
    kept = [c for c in json.load(open(path)) if not c["name"].startswith("cmplx.eig")]
    lines = [line.rstrip(",\n") for line in open(path) if line.startswith("{") and not line.startswith('{"name":"cmplx.eig')]
    assert len(lines) == len(kept)
    with open(path, "w") as out:
        out.write("[\n" + ",\n".join(lines + [json.dumps(c, separators=(",", ":")) for c in cases]) + "\n]\n")
