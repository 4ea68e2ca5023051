"""Writes ../coefficients.go: Chebyshev series of special functions, by mpmath at 40 digits.

Run with mpmath installed: python coefficients.py > ../coefficients.go
A series is the cosine sum over 128 points; c0 is halved, terms below 1e-17 of the largest are left out.
"""
from mpmath import mp, mpf, cos, pi, erfc, exp, sqrt, e1, ei, besselj, log, euler, sin, bessely, loggamma, digamma

mp.dps = 40
N = 128


def series(f):
    at = [cos(pi * (k + mpf(1) / 2) / N) for k in range(N)]
    values = [f(t) for t in at]
    c = [2 * sum(v * cos(pi * j * (k + mpf(1) / 2) / N) for k, v in enumerate(values)) / N for j in range(70)]
    c[0] /= 2
    top = max(abs(x) for x in c)
    while abs(c[-1]) < mpf("1e-17") * top:
        c.pop()
    return c


def mapped(f, c):
    """f of x from 0 to infinity, for t = 1 - 2c/(x + c)"""
    return lambda t: f(c * (1 + t) / (1 - t))


def erfcx(x):
    return exp(x * x) * erfc(x)


def ein(x):
    return e1(x) + euler + log(x)


def hankel(n, x):
    """P and Q of Hankel's form: J = sqrt(2/(pi x))(P cos w - Q sin w), w = x - (2n+1) pi/4"""
    w, by = x - (2 * n + 1) * pi / 4, sqrt(pi * x / 2)
    j, y = besselj(n, x) * by, bessely(n, x) * by
    return j * cos(w) + y * sin(w), y * cos(w) - j * sin(w)


def farther(f):
    """f of x from 8, for t = 2 (8/x)^2 - 1"""
    return lambda t: f(8 / sqrt((t + 1) / 2))


def stirling(a):
    """a times the remainder of Stirling's formula for the logarithm of the gamma function"""
    return a * (loggamma(a) - (a - mpf(1) / 2) * log(a) + a - log(2 * pi) / 2)


def from_two(f):
    """f of x from 2, for t = 1 - 4/x"""
    return lambda t: f(4 / (1 - t))


TABLES = [
    ("erfcxSeries", "of (x + 3)·erfcx(x) in 1 − 6/(x + 3), for x ≥ 0", mapped(lambda x: (x + 3) * erfcx(x), 3)),
    ("einSeries", "of (E₁(x) + γ + log x)/x in 2x − 1, for x up to 1", lambda t: ein((t + 1) / 2) / ((t + 1) / 2)),
    ("e1Series", "of (x + 1)·eˣ·E₁(x) in 1 − 4/(x + 1), for x ≥ 1", lambda t: (lambda x: (x + 1) * exp(x) * e1(x))(4 / (1 - t) - 1)),
    ("eiSeries", "of (Ei(x) − γ − log x)/x in x/4 − 1, divided by eˣ, for x up to 8", lambda t: (lambda x: (ei(x) - euler - log(x)) / x / exp(x))(4 * (t + 1))),
    ("eiMiddle", "of x·e⁻ˣ·Ei(x) in 32/x − 3, for x from 8 to 16", lambda t: (lambda x: x * exp(-x) * ei(x))(32 / (t + 3))),
    ("eiFar", "of x·e⁻ˣ·Ei(x) in 64/x − 3, for x from 16 to 32", lambda t: (lambda x: x * exp(-x) * ei(x))(64 / (t + 3))),
    ("eiFarthest", "of x·e⁻ˣ·Ei(x) in 64/x − 1, for x ≥ 32", lambda t: (lambda x: x * exp(-x) * ei(x))(64 / (t + 1))),
    ("j0Near", "of J₀(x) in x²/32 − 1, for x up to 8", lambda t: besselj(0, sqrt(32 * (t + 1)))),
    ("j1Near", "of J₁(x)/x in x²/32 − 1, for x up to 8", lambda t: (lambda x: besselj(1, x) / x)(sqrt(32 * (t + 1)))),
    ("p0Far", "of P of J₀ in 2·(8/x)² − 1, for x ≥ 8", farther(lambda x: hankel(0, x)[0])),
    ("q0Far", "of x·Q of J₀, likewise", farther(lambda x: x * hankel(0, x)[1])),
    ("p1Far", "of P of J₁, likewise", farther(lambda x: hankel(1, x)[0])),
    ("q1Far", "of x·Q of J₁, likewise", farther(lambda x: x * hankel(1, x)[1])),
    ("stirlingSeries", "of x times the remainder of Stirling's formula in 1 − 4/x, for x ≥ 2", from_two(stirling)),
    ("stirlingSlopes", "of −x² times its derivative, likewise", from_two(lambda x: x * (x * (log(x) - digamma(x)) - mpf(1) / 2))),
]

print("package special\n")
print("// Chebyshev series, by testdata/coefficients.py.\nvar (")
for name, doc, f in TABLES:
    print(f"\t// {name} is that {doc}.")
    print(f"\t{name} = []float64{{")
    c = [float(x) for x in series(f)]
    for i in range(0, len(c), 5):
        print("\t\t" + ", ".join(repr(x) for x in c[i:i + 5]) + ",")
    print("\t}")
print(")")
