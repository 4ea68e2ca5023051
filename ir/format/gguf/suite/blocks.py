"""Writes ../testdata/blocks.bin and quantized.bin, with gguf 0.19.0 and numpy 2.4.6: python blocks.py.

blocks.bin has for each type that gguf dequantizes: its number and the number of bytes, u32 each; the
bytes of two random blocks whose elements are finite; their elements, f32. quantized.bin has the same for
the types that gguf quantizes in full: number and bytes; the bytes; and the elements that they were made
of.
"""

import pathlib
import struct

import numpy
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

random = numpy.random.default_rng(7)
folder = pathlib.Path(__file__).resolve().parent.parent / "testdata"

out = b""
for t in quants._type_traits:
    elements, size = GGML_QUANT_SIZES[t]
    n = 2 if elements > 1 else 8
    while True:
        raw = random.integers(0, 256, (1, n * size), dtype=numpy.uint8)
        values = quants.dequantize(raw, t)
        if numpy.isfinite(values).all() and abs(values).max() > 0:
            break
    out += struct.pack("<II", t, raw.size) + raw.tobytes() + values.astype("<f4").tobytes()
(folder / "blocks.bin").write_bytes(out)

out = b""
for t in (T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.BF16, T.F16, T.F32):
    x = random.standard_normal((4, 64)).astype(numpy.float32)
    x[1] = 0
    x[2] = numpy.abs(x[2]) * 3e-6
    x[3, :32] = 1.5
    raw = quants.quantize(x, t)
    raw = raw.view(numpy.uint8)
    out += struct.pack("<II", t, raw.size) + raw.tobytes() + x.tobytes()
(folder / "quantized.bin").write_bytes(out)
