"""The tokens of sampling_test.go, by the formulas, in float64.

Run with numpy 2.4.6: python sampling.py > sampling.json
"""
import json
import numpy as np

V = 320
cases = [  # temperature, top_k, top_p, min_p, repetition, presence, frequency, random
    (0, 0, 1, 0, 1, 0, 0, 0.5), (1, 0, 1, 0, 1, 0, 0, 0.3), (0.7, 40, 1, 0, 1, 0, 0, 0.9), (1.5, 0, 0.9, 0, 1, 0, 0, 0.99),
    (1, 0, 1, 0.2, 1, 0, 0, 0.7), (0.8, 50, 0.8, 0.05, 1.3, 0, 0, 0.6), (1, 0, 0.95, 0, 1, 1.5, 0.5, 0.2), (0, 5, 0.5, 0, 1.7, 2, 1, 0.1),
    (2, 3, 1, 0, 1, 0, 0, 0.0), (1, 1, 1, 0, 1, 0, 0, 0.999), (1, 0, 0.01, 0, 1, 0, 0, 0.5), (3, 100, 0.7, 0.01, 1.1, -0.5, -0.25, 0.45),
]
out = []
for masked in (False, True):
    for r, (temp, k, top_p, min_p, rep, presence, frequency, u) in enumerate(cases):
        i = np.arange(V)
        raw = ((i * 73 + 11 * r) % 331) / 331 * 12 - 6
        x = raw.copy()
        seen, counts = i % 7 == r % 7, (i % 5 == 0) * (i % 3)
        x = np.where(seen, np.where(x > 0, x / rep, x * rep), x)
        x = x - presence * (counts > 0) - frequency * counts
        if masked:
            x[(r * 31) % V] += 4
            x[(r * 17 + 3) % V] -= 100
            x[(i * 13 + r) % 10 == 0] = -np.inf
        if temp == 0:
            token = int(np.argmax(x))
        else:
            y = x / temp
            order = np.argsort(-y, kind="stable")
            kept = order[:k] if k else order
            p = np.exp(y[kept] - y[order[0]])
            p /= p.sum()
            n = int((np.cumsum(p) - p < top_p).sum()) if top_p < 1 else len(kept)
            kept, p = kept[:n], p[:n]
            kept = kept[p >= min_p * p[0]]
            w = np.where(np.isin(i, kept), np.exp(y - y[order[0]]), 0)
            token = int(np.argmax(np.cumsum(w) > u * w.sum()))
        out.append([token, float(raw[token] - np.log(np.exp(raw).sum()))])
print(json.dumps({"cases": cases, "want": out}))
