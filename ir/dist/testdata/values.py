"""Writes values.json: densities and moments by SciPy, divergences by PyTorch, integers by JAX.

Run with SciPy, PyTorch and JAX installed: python values.py > values.json
"""
import json
import math

import jax
import numpy as np
import scipy.special as sp
import scipy.stats as st
import torch
import torch.distributions as td

at = [0.05 * i for i in range(1, 20)]


def finite(x):
    """None stands for -inf, which JSON lacks."""
    return [float(v) if np.isfinite(v) else None for v in x]


def continuous(d, x):
    return {"x": x, "logProb": finite(d.logpdf(x)), "entropy": float(d.entropy()), "mean": float(d.mean()), "variance": float(d.var()), "quantiles": d.ppf(at).tolist()}


def discrete(d, x):
    return {"x": x, "logProb": finite(d.logpmf(x)), "entropy": float(d.entropy()), "mean": float(d.mean()), "variance": float(d.var())}


line = [-2.5, -0.3, 0.7, 1.9, 6.0]
half = [-1.0, 0.01, 0.4, 2.5, 9.0]
one = [-0.5, 0.02, 0.4, 0.97, 1.5]
logits = np.array([0.3, -1.2, 0.9, 0.0])
p = sp.softmax(logits)
con = [0.4, 2.0, 3.5]
x3 = [0.2, 0.5, 0.3]
low, high = (-0.5 - 0.7) / 1.3, (3.0 - 0.7) / 1.3
mix = [(0.3, -1.0, 0.5), (0.7, 2.0, 1.5)]
mean = sum(w * m for w, m, _ in mix)
dirichlet, multi = st.dirichlet(con), st.multinomial(9, p)
values = {
    "normal": continuous(st.norm(0.7, 1.3), line),
    "laplace": continuous(st.laplace(0.7, 1.3), line),
    "logistic": continuous(st.logistic(0.7, 1.3), line),
    "gumbel": continuous(st.gumbel_r(0.7, 1.3), line),
    "uniform": continuous(st.uniform(-0.5, 2.0), line),
    "studentT": continuous(st.t(4.5, 0.7, 1.3), line),
    "truncatedNormal": continuous(st.truncnorm(low, high, 0.7, 1.3), line),
    "exponential": continuous(st.expon(scale=1 / 1.7), half),
    "gamma": continuous(st.gamma(2.3, scale=1 / 1.7), half),
    "small gamma": continuous(st.gamma(0.4, scale=1 / 1.7), half),
    "beta": continuous(st.beta(2.3, 0.7), one),
    "bernoulli": discrete(st.bernoulli(1 / (1 + math.exp(-0.8))), [0, 1, 2]),
    "poisson": discrete(st.poisson(3.7), [-1, 0, 3, 11]),
    "binomial": discrete(st.binom(9, 0.3), [-1, 0, 4, 9, 10]),
    "dirichlet": {"x": x3, "logProb": [float(dirichlet.logpdf(x3))], "entropy": float(dirichlet.entropy()), "means": dirichlet.mean().tolist(), "variances": dirichlet.var().tolist()},
    "categorical": {"x": [0, 2, 3], "logProb": np.log(p)[[0, 2, 3]].tolist(), "entropy": float(st.entropy(p))},
    "multinomial": {"x": [3, 1, 3, 2], "logProb": [float(multi.logpmf([3, 1, 3, 2]))], "means": (9 * p).tolist(), "variances": (9 * p * (1 - p)).tolist()},
    "mixture": {
        "x": line, "logProb": np.log(sum(w * st.norm(m, s).pdf(line) for w, m, s in mix)).tolist(), "mean": mean,
        "variance": sum(w * (s * s + (m - mean) ** 2) for w, m, s in mix),
    },
}
values["poisson"].pop("entropy")
T = lambda *x: torch.tensor(x, dtype=torch.float64)
kl = lambda p, q: float(td.kl_divergence(p, q))
divergences = {
    "normal": kl(td.Normal(T(0.7), T(1.3)), td.Normal(T(0.2), T(0.6))),
    "laplace": kl(td.Laplace(T(0.7), T(1.3)), td.Laplace(T(0.2), T(0.6))),
    "uniform": kl(td.Uniform(T(-0.5), T(1.5)), td.Uniform(T(-1.0), T(2.5))),
    "exponential": kl(td.Exponential(T(1.7)), td.Exponential(T(0.6))),
    "gamma": kl(td.Gamma(T(2.3), T(1.7)), td.Gamma(T(0.6), T(0.9))),
    "beta": kl(td.Beta(T(2.3), T(0.7)), td.Beta(T(1.2), T(3.0))),
    "dirichlet": kl(td.Dirichlet(T(*con)), td.Dirichlet(T(1, 0.5, 2))),
    "bernoulli": kl(td.Bernoulli(logits=T(0.8)), td.Bernoulli(logits=T(-0.4))),
    "categorical": kl(td.Categorical(logits=T(*logits)), td.Categorical(logits=T(1, 0, -1, 0.5))),
    "poisson": kl(td.Poisson(T(3.7)), td.Poisson(T(5.0))),
    "binomial": kl(td.Binomial(9, T(0.3)), td.Binomial(9, T(0.45))),
}
with jax.threefry_partitionable(True):
    integers = [[lo, hi] + jax.random.randint(jax.random.key(42), (6,), lo, hi).tolist() for lo, hi in ((0, 10), (-7, 1000003), (-2**31, 2**31 - 1))]


def slope(a, x):
    """of the quantile by a, by central differences of SciPy's inverse"""
    u, h = sp.gammainc(a, x), 1e-4 * a
    f = lambda k: sp.gammaincinv(a + k * h, u)
    return float((8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * h))


slopes = [[a, x, slope(a, x)] for a, x in ((0.3, 0.05), (0.5, 2.0), (1.0, 1.0), (2.5, 1.2), (7.0, 9.0), (20.0, 15.0), (60.0, 70.0))]
print(json.dumps({"values": values, "divergences": divergences, "integers": integers, "slopes": slopes}, indent=1))
