# Prints the values of TestLinearAlgebraEqualsOthers: digests of functions of
# matrices and of their derivatives of orders 1 to 3, each derivative that of the
# digest before it.
#
#   pip install jax==0.10.2 numpy==2.4.6 scipy==1.17.1 && python linalg.py
import jax
import jax.numpy as np
import jax.scipy.linalg as sl
import numpy

jax.config.update("jax_enable_x64", True)


def pattern(seed, dims):
    i = numpy.arange(numpy.prod(dims, dtype=int))
    return np.asarray(((i * 37 + 11 + seed * 5) % 23 - 11) / 8).reshape(dims)


def digest(a):
    a = a.reshape(-1)
    i = numpy.arange(a.size)
    return np.sum(a * (((i * 29 + 5) % 17 - 8) / 4))


def spd(x):
    return x @ np.swapaxes(x, -1, -2) + np.diag(np.arange(x.shape[-2]) + 2.0)


def signed(v):  # columns
    w = 1 / (np.arange(v.shape[-2]) + np.sqrt(2.0))
    return v * np.sign(np.sum(v * w[:, None], -2, keepdims=True))


def eigenvectors(x):
    return signed(np.linalg.eigh(spd(x), symmetrize_input=True)[1])


def svd(x):
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    w = 1 / (np.arange(vt.shape[-1]) + np.sqrt(2.0))
    sign = np.sign(np.sum(vt * w, -1))
    return u * sign[..., None, :], s, vt * sign[..., :, None]


def log_spd(x):  # by the eigenvalues
    w, v = np.linalg.eigh(spd(x))
    return v @ np.diag(np.log(w)) @ v.T


def sqrt_spd(x):
    w, v = np.linalg.eigh(spd(x))
    return v @ np.diag(np.sqrt(w)) @ v.T


tri = lambda x, y, **k: sl.solve_triangular(x, y, **k)
functions = {
    "cholesky": ([(3, 3)], lambda x: np.linalg.cholesky(spd(x))),
    "triangular_solve": ([(3, 3), (3, 2)], lambda x, y: tri(x + 3 * np.eye(3), y, lower=True)),
    "triangular_solve, transposed": ([(3, 3), (3, 2)], lambda x, y: tri(x + 3 * np.eye(3), y, trans=1, unit_diagonal=True)),
    "solve": ([(3, 3), (3, 2)], lambda x, y: np.linalg.solve(x + 3 * np.eye(3), y)),
    "inv": ([(3, 3)], lambda x: np.linalg.inv(x + 3 * np.eye(3))),
    "lu": ([(3, 4)], lambda x: jax.lax.linalg.lu(x)[0]),
    "lu of more rows": ([(4, 3)], lambda x: jax.lax.linalg.lu(x)[0]),
    "det": ([(3, 3)], lambda x: np.linalg.det(x)),
    "slogdet": ([(3, 3)], lambda x: np.linalg.slogdet(x)[1]),
    "q": ([(4, 3)], lambda x: np.linalg.qr(x)[0]),
    "r": ([(4, 3)], lambda x: np.linalg.qr(x)[1]),
    "eigenvalues": ([(3, 3)], lambda x: np.linalg.eigh(spd(x))[0]),
    "eigenvectors": ([(3, 3)], eigenvectors),
    "u": ([(4, 3)], lambda x: svd(x)[0]),
    "singular values": ([(3, 4)], lambda x: svd(x)[1]),
    "vt": ([(3, 4)], lambda x: svd(x)[2]),
    "pinv": ([(4, 3)], lambda x: np.linalg.pinv(x)),
    "lstsq": ([(4, 3), (4, 2)], lambda x, y: np.linalg.inv(x.T @ x) @ x.T @ y),
    "expm": ([(3, 3)], lambda x: sl.expm(x)),
    "expm, squared": ([(3, 3)], lambda x: sl.expm(-4 * spd(x))),
    "matrix_power": ([(3, 3)], lambda x: np.linalg.matrix_power(x, 5)),
    "spd_sqrtm": ([(3, 3)], sqrt_spd),
    "spd_logm": ([(3, 3)], log_spd),
    "nuclear norm": ([(3, 4)], lambda x: np.linalg.norm(x, "nuc")),
    "spectral norm": ([(4, 3)], lambda x: np.linalg.norm(x, 2)),
    "norm of rows": ([(4, 3)], lambda x: np.linalg.norm(x, np.inf)),
    "cond_number": ([(3, 3)], lambda x: np.linalg.cond(x)),
}

for name, (shapes, f) in functions.items():
    args = [pattern(i + 1, s) for i, s in enumerate(shapes)]
    g = lambda *a: digest(f(*a))
    out = []
    for order in range(4):
        out.append(float(g(*args)))
        before = g
        g = (lambda before: lambda *a: sum(digest(d) for d in jax.grad(before, argnums=range(len(a)))(*a)))(before)
    print(f'\t"{name}": {{' + ", ".join(repr(v) for v in out) + "},")
