"""Writes packed.json: blocks of bytes and the f32 bits that they stand for.

Run with gguf 0.19.0 and ml_dtypes: python packed.py > packed.json
Bytes are drawn by NumPy's PCG64(7); a digest of the bits of all elements,
sum(bits[i]*(2*i+1)) modulo 2**64, stands for them, with the first four.
"""
import json

import ml_dtypes
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

rng = np.random.Generator(np.random.PCG64(7))
out = {}


def add(name, data, values):
    bits = np.ascontiguousarray(values.astype(np.float32)).reshape(-1).view(np.uint32).astype(np.uint64)
    with np.errstate(over="ignore"):
        digest = int((bits * (2 * np.arange(bits.size, dtype=np.uint64) + 1)).sum())
    out[name] = {"bytes": data.tobytes().hex(), "first": [int(b) for b in bits[:4]], "digest": str(digest)}


for name in ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4"]:
    kind = GGMLQuantizationType[name]
    size = GGML_QUANT_SIZES[kind][1]
    data = rng.integers(0, 256, (1, 2 * size), dtype=np.uint8)
    # Scales of f16 are finite: the upper bit of their exponent is 0.
    halves = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
              "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0]}.get(name, [])
    for at in halves:
        for block in range(2):
            data[0, block * size + at + 1] &= 0xBF
    if name == "MXFP4":
        data[0, 0], data[0, size] = 120, 1
    add(name.lower(), data, quants.dequantize(data, kind))

# q8_k: an f32 scale, 256 signed bytes, and sums that are not needed.
data = rng.integers(0, 256, (1, 292), dtype=np.uint8)
data[0, :4] = np.frombuffer(np.float32(0.0123).tobytes(), np.uint8)
add("q8_k", data, np.float32(0.0123) * data[0, 4:260].view(np.int8).astype(np.float32))

codes = np.arange(256, dtype=np.uint8)
for name, kind in (("f8_e4m3", ml_dtypes.float8_e4m3fn), ("f8_e5m2", ml_dtypes.float8_e5m2)):
    values = codes.view(kind).astype(np.float32)
    keep = ~np.isnan(values)
    add(name, codes[keep], values[keep])
print(json.dumps(out, indent=0))
