"""Writes options.json: images of a scene with options, by a loop over pixels and Gaussians in NumPy (2.4.6), with spherical harmonics of SciPy (1.17.1).

Run with NumPy and SciPy installed: python options.py > options.json
"""
import json
import math

import numpy as np
from scipy.special import sph_harm_y
from scipy.spatial.transform import Rotation


def wave(seed, offset, scale, *dims):
    return (offset + scale * np.sin(seed + 0.7 * np.arange(math.prod(dims)))).reshape(dims)


def harmonics(d, degrees):
    x, y, z = d
    polar, azimuth = math.acos(z), math.atan2(y, x)
    out = []
    for l in range(degrees):
        for m in range(-l, l + 1):
            v = sph_harm_y(l, abs(m), polar, azimuth)
            out.append(v.real if m == 0 else math.sqrt(2) * (v.imag if m < 0 else v.real))
    return np.array(out)


R = Rotation.from_euler("xyz", [0.1, -0.2, 0.3]).as_matrix()
T, F, C = np.array([0.1, -0.2, 3.0]), np.array([4.0, 5.0]), np.array([2.0, 1.5])
N, H, W, BACK = 6, 4, 5, np.array([0.1, 0.2, 0.3])


def image(alpha_min=1 / 255, radius=math.inf, transmittance=0, most=math.inf, anisotropy=math.inf, k=0, bands=0):
    means, quaternions = wave(1, 0, 0.8, N, 3), wave(3, 0.3, 1, N, 4)
    scales, opacities, colors = wave(2, 0.4, 0.3, N, 3), wave(4, 0.6, 0.39, N), wave(5, 0.5, 0.5, N, 3)
    coefficients = wave(6, 0, 0.6, N, k, 3) if k else None
    flat = []
    for i in range(N):
        p = R @ means[i] + T
        w, x, y, z = quaternions[i]
        s = np.maximum(scales[i], scales[i].max() / anisotropy)
        J = np.array([[F[0] / p[2], 0, -F[0] * p[0] / p[2] ** 2], [0, F[1] / p[2], -F[1] * p[1] / p[2] ** 2]])
        A = J @ R @ Rotation.from_quat([x, y, z, w]).as_matrix() @ np.diag(s)
        color = colors[i]
        if k:
            d = means[i] + R.T @ T
            degrees = min(math.isqrt(k), bands or 9)
            color = np.maximum(0.5 + harmonics(d / np.linalg.norm(d), degrees) @ coefficients[i][: degrees**2], 0)
        flat.append((p[2], F * p[:2] / p[2] + C, A @ A.T + 0.3 * np.eye(2), opacities[i], color))
    flat.sort(key=lambda g: g[0])
    out = np.zeros((H, W, 3))
    for row in range(H):
        for column in range(W):
            light, count = 1.0, 0
            for _, center, covariance, opacity, color in flat:
                d = np.array([column + 0.5, row + 0.5]) - center
                square = d @ np.linalg.solve(covariance, d)
                alpha = min(opacity * math.exp(-square / 2), 0.99)
                if alpha < alpha_min or square > radius**2:
                    continue
                if count == most or light * (1 - alpha) < transmittance:
                    break
                out[row, column] += light * alpha * color
                light *= 1 - alpha
                count += 1
            out[row, column] += light * BACK
    return out.ravel().tolist()


print(json.dumps({
    "none": image(), "least alpha": image(alpha_min=0.2), "radius": image(radius=1.5), "least transmittance": image(transmittance=0.4), "two": image(most=2),
    "all": image(alpha_min=0.05, radius=2, transmittance=0.3, most=3), "anisotropy": image(anisotropy=1.5),
    "harmonics": image(k=16), "two bands": image(k=16, bands=2), "one coefficient": image(k=1),
}, indent=1))
