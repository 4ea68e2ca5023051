"""Writes the cases of the domain com.microsoft, with the values that onnxruntime computes.

python microsoft.py FILE writes an npz file. CASE/model is a model, whose sizes are symbols; CASE/in/NAME
and CASE/out/NAME are its operands and results; CASE/in2/NAME and CASE/out2/NAME those of other sizes.
"""

import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
arrays = {}


def floats(*shape, scale=1.0):
    return (np.round(random.standard_normal(shape) * scale * 64) / 64).astype(np.float32)  # compresses well


def case(name, op, inputs, outputs, weights=(), domain="com.microsoft", opset=21, **attrs):
    """inputs are lists of (name, array, symbols of its axes) for each run; None is an operand left out."""
    weights = dict(weights)
    given = [i for i in inputs[0] if i is not None and i[0] not in weights]
    names = ["" if i is None else i[0] for i in inputs[0]]
    node = helper.make_node(op, names, outputs, name, domain=domain, **{k: v for k, v in attrs.items() if v is not None})
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(n, kind(a), s) for n, a, s in given],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs if o],
        [numpy_helper.from_array(a, n) for n, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    arrays[f"{name}/model"] = np.frombuffer(model.SerializeToString(), np.uint8)
    for i, run in enumerate(inputs):
        feeds = {x[0]: x[1] for x in run if x is not None and x[0] not in weights}
        got = session.run(None, feeds)
        at = "" if i == 0 else str(i + 1)
        for n, a in feeds.items():
            arrays[f"{name}/in{at}/{n}"] = a
        for o, a in zip([o for o in outputs if o], got):
            arrays[f"{name}/out{at}/{o}"] = a


def packed(q, bits):
    """Packs unsigned integers along the last axis, the lowest bits first."""
    each = 8 // bits
    pad = -q.shape[-1] % each
    q = np.concatenate([q, np.zeros(q.shape[:-1] + (pad,), q.dtype)], -1).reshape(q.shape[:-1] + (-1, each))
    return (q << (bits * np.arange(each))).sum(-1).astype(np.uint8)


def nbits(name, k, block, bits=4, zeros=None, order=False, half=False, bias=False, n=5, **attrs):
    blocks = -(-k // block)
    q = random.integers(0, 1 << bits, (n, blocks, block))
    scales = floats(n, blocks, scale=0.1)
    if half:
        scales = scales.astype(np.float16).astype(np.float32)
    weights = {"w": packed(q, bits), "s": scales}
    if zeros == "packed":
        weights["z"] = packed(random.integers(0, 1 << bits, (n, blocks)), bits)
    elif zeros == "usual":
        weights["z"] = packed(np.full((n, blocks), 1 << (bits - 1)), bits)
    elif zeros == "floats":
        weights["z"] = floats(n, blocks) + 8
    if order:
        weights["g"] = random.integers(0, blocks, blocks * block).astype(np.int32)[:k]
    if bias:
        weights["b"] = floats(n)
    runs = []
    for rows in [(2, 3), (1, 1)]:
        x = ("x", floats(*rows, k), ["batch", "time", k])
        runs.append([x] + [(o, None, None) if o in weights else None for o in ["w", "s", "z", "g", "b"]])
        while runs[-1][-1] is None:
            runs[-1].pop()
    case(name, "MatMulNBits", runs, ["y"], weights, K=k, N=n, bits=bits, block_size=block, **attrs)


def gather(name, bits, block, zeros=False, signed=None, axis=0, along=1):
    shape = [6, 40] if signed is None else [4, 6, 40]
    blocks = list(shape)
    blocks[along] = -(-shape[along] // block)
    q, z = random.integers(0, 1 << bits, shape), random.integers(0, 1 << bits, blocks)
    weights = {"s": floats(*blocks), "q": packed(q, bits)}
    if signed is not None:
        weights["q"] = (q - 8).astype(ml_dtypes.int4) if signed else q.astype(ml_dtypes.uint4)
    operands = [("q", None, None), ("i", np.array([[1, -2, 3]], np.int64), ["a", "b"]), ("s", None, None)]
    if zeros:
        weights["z"] = packed(z, bits)
        operands.append(("z", None, None))
    case(name, "GatherBlockQuantized", [operands], ["y"], weights, bits=bits if signed is None else None,
         block_size=block, gather_axis=axis, quantize_axis=along)


def tables(length, half):
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(half) / half)
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def grouped(name, steps, heads=4, shared=2, d=16, capacity=0, side_by_side=False, rotary=0, bias=False, sink=False,
            positions=False, **attrs):
    """steps are (lengths of sequences before, new tokens)."""
    runs, weights = [], {}
    if rotary:
        cos, sin = tables(40, rotary // 2)
        weights = {"cos": cos, "sin": sin}
    for before, time in steps:
        batch, past = len(before), capacity or max(before)
        total = max(before) + time
        sizes = ["batch", "time"]
        if side_by_side:
            run = [("q", floats(batch, time, (heads + 2 * shared) * d), sizes + [(heads + 2 * shared) * d]), None, None]
        else:
            run = [("q", floats(batch, time, heads * d), sizes + [heads * d])]
            run += [(n, floats(batch, time, shared * d), sizes + [shared * d]) for n in "kv"]
        if past:
            axes = ["batch", shared, capacity or "past", d]
            kept = (np.arange(past)[None, :] < np.array(before)[:, None])[:, None, :, None]
            run += [(n, floats(batch, shared, past, d) * kept, axes) for n in ("past_k", "past_v")]
        else:
            run += [None, None]
        run += [("last", np.array([b + time - 1 for b in before], np.int32), ["batch"]), ("total", np.array(total, np.int32), [])]
        run += [("cos", None, None), ("sin", None, None)] if rotary else [None, None]
        at = np.array([[b + i for i in range(time)] for b in before], np.int64) + 2
        run += [("at", at, sizes)] if positions else [None]
        run += [("bias", floats(batch, 1, time, total), ["batch", 1, "time", "total"])] if bias else [None]
        if sink:
            weights["sink"] = floats(heads)
            run += [("sink", None, None)]
        while run[-1] is None:
            run.pop()
        runs.append(run)
    case(name, "GroupQueryAttention", runs, ["y", "k2", "v2"], weights, num_heads=heads, kv_num_heads=shared,
         do_rotary=1 if rotary else 0, **attrs)


def several(name, split=False, bias=False, mask=None, additive=False, past=False, cross=False, heads=2, d=8, **attrs):
    runs, weights = [], {}
    if bias:
        weights["b"] = floats(3 * heads * d)
    for batch, time in [(2, 3), (1, 4)]:
        keys, width = time + (2 if cross else 0), heads * d
        before = 2 if past else 0
        total = before + keys
        run = [("q", floats(batch, time, width), ["batch", "time", width])]
        key = "keys" if cross else "time"
        if split:
            run += [(n, floats(batch, heads, keys, d), ["batch", heads, key, d]) for n in "kv"]
        else:
            run += [(n, floats(batch, keys, width), ["batch", key, width]) for n in "kv"]
        run += [("b", None, None) if bias else None]
        if mask == "lengths":
            run += [("m", np.array([keys - i for i in range(batch)], np.int32), ["batch"])]
        elif mask == "keys":
            m = np.ones((batch, total), np.int32)
            m[:, 1] = 0
            run += [("m", m, ["batch", "total"])]
        else:
            run += [None]
        run += [("a", floats(batch, 1, time, total), ["batch", 1, "time", "total"]) if additive else None]
        if past:
            run += [(n, floats(batch, heads, before, d), ["batch", heads, "past", d]) for n in ("past_k", "past_v")]
        while run[-1] is None:
            run.pop()
        runs.append(run)
    case(name, "MultiHeadAttention", runs, ["y", "k2", "v2"] if past else ["y"], weights, num_heads=heads, **attrs)


def merged(name, mask=None, past=False, sizes=None, additive=False, heads=2, width=12, **attrs):
    sizes = sizes or [16, 16, 16]
    weights = {"w": floats(width, sum(sizes), scale=0.3), "b": floats(sum(sizes))}
    runs = []
    for batch, time in [(2, 3), (1, 4)]:
        before = 2 if past else 0
        total = time + before
        run = [("x", floats(batch, time, width), ["batch", "time", width]), ("w", None, None), ("b", None, None)]
        masks = {
            "lengths": lambda: (np.array([time - i for i in range(batch)], np.int32), ["batch"]),
            "keys": lambda: (np.array([[j != i for j in range(total)] for i in range(batch)], np.int32), ["batch", "total"]),
            "pairs": lambda: (random.integers(0, 2, (batch, time, total)).astype(np.int32) | np.eye(time, total, dtype=np.int32), ["batch", "time", "total"]),
        }
        run += [("m",) + masks[mask]() if mask else None]
        run += [("past", floats(2, batch, heads, before, 8), [2, "batch", heads, "past", 8]) if past else None]
        run += [("a", floats(batch, heads, time, total), ["batch", heads, "time", "total"]) if additive else None]
        while run[-1] is None:
            run.pop()
        runs.append(run)
    case(name, "Attention", runs, ["y", "present"] if past else ["y"], weights, num_heads=heads,
         qkv_hidden_sizes=None if sizes == [16, 16, 16] else sizes, **attrs)


def rotary(name, shape, at, half, **attrs):
    cos, sin = tables(20, half)
    axes = ["batch", "time", shape[2]] if len(shape) == 3 else ["batch", shape[1], "time", shape[3]]
    case(name, "RotaryEmbedding", [[("x", floats(*shape), axes), ("at", np.array(at, np.int64), ["batch", "time"] if np.ndim(at) == 2 else [1]),
         ("cos", None, None), ("sin", None, None)]], ["y"], {"cos": cos, "sin": sin}, **attrs)


def main(file):
    nbits("nbits_4", 64, 32)
    nbits("nbits_4_half", 64, 32, half=True)
    nbits("nbits_4_half_zeros", 128, 64, half=True, zeros="packed")
    nbits("nbits_4_usual_zeros", 128, 32, zeros="usual", bias=True)
    nbits("nbits_4_zeros_padded", 80, 32, zeros="packed")
    nbits("nbits_4_floats", 64, 16, zeros="floats")
    nbits("nbits_4_order", 64, 16, order=True)  # onnxruntime ignores zero points of columns in another order
    nbits("nbits_4_256", 288, 256, half=True)
    nbits("nbits_8", 64, 32, bits=8)
    nbits("nbits_8_half", 128, 128, bits=8, half=True)
    nbits("nbits_8_half_zeros", 64, 32, bits=8, half=True, zeros="packed", bias=True)
    nbits("nbits_2", 64, 16, bits=2, zeros="packed")
    gather("gather_4", 4, 16)
    gather("gather_4_zeros", 4, 16, zeros=True)
    gather("gather_8", 8, 32, zeros=True)
    gather("gather_int4", 4, 16, signed=True, axis=1, along=2)
    gather("gather_uint4", 4, 16, signed=False, axis=1, along=2)
    rotary("rotary", (2, 3, 32), [[1, 2, 3], [5, 7, 9]], 8)
    rotary("rotary_heads", (2, 2, 3, 16), [4], 8, interleaved=1)
    rotary("rotary_part", (2, 3, 32), [[1, 2, 3], [5, 7, 9]], 4, num_heads=2, rotary_embedding_dim=8)
    grouped("grouped", [([0, 0], 3), ([0], 5)])
    grouped("grouped_past", [([4], 1), ([5], 2)], rotary=16)
    grouped("grouped_ragged", [([4, 2], 1), ([6], 1)], rotary=16, side_by_side=True)
    grouped("grouped_capacity", [([4, 2], 1), ([6], 2)], capacity=12, rotary=16, d=32, rotary_interleaved=1)
    grouped("grouped_window", [([7], 1), ([9, 5], 1)], local_window_size=3, rotary=16)
    grouped("grouped_window_prompt", [([0, 0], 6)], local_window_size=3)
    grouped("grouped_softcap", [([5], 2)], softcap=1.5, scale=0.5, bias=True)
    grouped("grouped_bias_ragged", [([4, 2], 1)], bias=True, softcap=2.0)
    grouped("grouped_sink", [([5], 1), ([3, 1], 1)], sink=True)
    grouped("grouped_smooth", [([0, 0], 4)], smooth_softmax=1)
    grouped("grouped_positions", [([5], 1)], rotary=16, positions=True, shared=4)
    grouped("grouped_both_ways", [([5], 2), ([4], 3)], causal=0)
    several("several")
    several("several_cross", cross=True, bias=True)
    several("several_heads", split=True, cross=True)
    several("several_bias", bias=True, mask="keys", additive=True)
    several("several_lengths", mask="lengths")
    several("several_past", past=True, unidirectional=1, scale=0.3)
    several("several_past_mask", past=True, mask="keys")
    merged("merged")
    merged("merged_lengths", mask="lengths")
    merged("merged_keys", mask="keys", mask_filter_value=-3.0)
    merged("merged_pairs", mask="pairs", additive=True)
    merged("merged_causal", unidirectional=1, sizes=[16, 16, 24])
    merged("merged_past", past=True, unidirectional=1)
    np.savez_compressed(file, **arrays)


main(sys.argv[1])
