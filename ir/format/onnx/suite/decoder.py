"""Writes a small decoder in the layout of onnxruntime-genai, and the values that onnxruntime computes.

python decoder.py FILE writes an npz file: model, and the operands and results of steps, in/N/NAME and out/N/NAME. The weights
are random and packed to 4 bits, with scales in f16 for some, as exporters write for GPUs, and in f32 for others.
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, SHARED, SIZE, INNER, VOCABULARY, BLOCK = 2, 64, 4, 2, 16, 96, 80, 32
random = np.random.default_rng(11)
nodes, weights = [], []


def weight(name, array):
    weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
    return name


def add(op, inputs, outputs, domain="", **attrs):
    nodes.append(helper.make_node(op, inputs, outputs, outputs[0], domain=domain, **attrs))
    return outputs[0]


def microsoft(op, inputs, outputs, **attrs):
    return add(op, inputs, outputs, "com.microsoft", **attrs)


def product(name, x, n, k, half=True, zeros=False):
    q = random.integers(0, 256, (n, k // BLOCK, BLOCK // 2)).astype(np.uint8)
    scales = np.abs(random.standard_normal((n, k // BLOCK))).astype(np.float32) * np.float32(0.25 / np.sqrt(k))
    if half:
        scales = scales.astype(np.float16).astype(np.float32)
    operands = [x, weight(name + ".q", q), weight(name + ".scales", scales)]
    if zeros:
        operands.append(weight(name + ".zeros", random.integers(0, 256, (n, (k // BLOCK + 1) // 2)).astype(np.uint8)))
    return microsoft("MatMulNBits", operands, [name], N=n, K=k, bits=4, block_size=BLOCK, accuracy_level=1)


def gain(name):
    return weight(name, (1 + random.standard_normal(WIDTH) / 8).astype(np.float32))


def layer(i, x, normal):
    at = f"layer{i}."
    wide = (HEADS + 2 * SHARED) * SIZE
    qkv = product(at + "qkv", normal, wide, WIDTH, half=i % 2 == 0, zeros=i == 0)
    past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
    y = microsoft("GroupQueryAttention", [qkv, "", ""] + past + ["last", "total", "cos", "sin"],
                  [at + "attention", f"present.{i}.key", f"present.{i}.value"],
                  num_heads=HEADS, kv_num_heads=SHARED, do_rotary=1, local_window_size=5 if i == 1 else -1)
    y = product(at + "out", y, WIDTH, HEADS * SIZE)
    normal, x = at + "normal", at + "sum"
    # Two additions and normalisations a layer, as exporters fuse them.
    microsoft("SkipSimplifiedLayerNormalization", [previous(i), y, gain(at + "gain")], [normal, "", "", x], epsilon=1e-5)
    gate, up = product(at + "gate", normal, INNER, WIDTH), product(at + "up", normal, INNER, WIDTH)
    act = add("Mul", [gate, add("Sigmoid", [gate], [at + "sigmoid"])], [at + "silu"])
    down = product(at + "down", add("Mul", [act, up], [at + "gated"]), WIDTH, INNER)
    microsoft("SkipSimplifiedLayerNormalization", [x, down, gain(at + "gain2")], [at + "normal2", "", "", at + "sum2"], epsilon=1e-5)


def previous(i):
    return "embedded" if i == 0 else f"layer{i - 1}.sum2"


def build():
    q = random.integers(0, 256, (VOCABULARY, WIDTH // 2)).astype(np.uint8)
    scales = (random.standard_normal((VOCABULARY, WIDTH // BLOCK)) / 8).astype(np.float32)
    microsoft("GatherBlockQuantized", [weight("embedding.q", q), "input_ids", weight("embedding.scales", scales)], ["embedded"],
              bits=4, block_size=BLOCK, gather_axis=0, quantize_axis=1)
    add("ReduceSum", ["attention_mask", weight("axis", np.array([1], np.int64))], ["lengths"], keepdims=0)
    add("Cast", [add("Sub", ["lengths", weight("one", np.array(1, np.int64))], ["last64"])], ["last"], to=TensorProto.INT32)
    add("Gather", [add("Shape", ["attention_mask"], ["shape"]), weight("first", np.array(1, np.int64))], ["total64"])
    add("Cast", ["total64"], ["total"], to=TensorProto.INT32)
    angle = np.arange(32)[:, None] * 10000.0 ** (-np.arange(SIZE // 2) / (SIZE // 2))
    weight("cos", np.cos(angle).astype(np.float32)), weight("sin", np.sin(angle).astype(np.float32))
    add("SimplifiedLayerNormalization", ["embedded", gain("gain")], ["normal"], epsilon=1e-5, axis=-1, stash_type=1)
    for i in range(LAYERS):
        layer(i, previous(i), "normal" if i == 0 else f"layer{i - 1}.normal2")
    product("logits", f"layer{LAYERS - 1}.normal2", VOCABULARY, WIDTH, half=False)


def model():
    build()
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch_size", s]) for n, s in (("input_ids", "sequence_length"), ("attention_mask", "total_sequence_length"))]
    cache = lambda kind, length: [helper.make_tensor_value_info(f"{kind}.{i}.{part}", TensorProto.FLOAT, ["batch_size", SHARED, length, SIZE])
                                  for i in range(LAYERS) for part in ("key", "value")]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCABULARY])
    graph = helper.make_graph(nodes, "decoder", ids + cache("past_key_values", "past_sequence_length"), [logits] + cache("present", "total_sequence_length"), weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def main(file):
    data = model().SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    arrays = {"decoder/model": np.frombuffer(data, np.uint8)}
    names = [o.name for o in session.get_outputs()]
    caches = [n for n in names if n != "logits"]
    past, length = {n.replace("present", "past_key_values"): np.zeros((1, SHARED, 0, SIZE), np.float32) for n in caches}, 0
    for step, time in enumerate([7, 1, 1, 3, 1]):
        length += time
        feeds = {"input_ids": random.integers(0, VOCABULARY, (1, time)), "attention_mask": np.ones((1, length), np.int64)} | past
        got = dict(zip(names, session.run(names, feeds)))
        past = {n.replace("present", "past_key_values"): got[n] for n in caches}
        arrays[f"decoder/in/{step}/input_ids"] = feeds["input_ids"]
        arrays[f"decoder/out/{step}/logits"] = got["logits"]
    for n in caches:
        arrays[f"decoder/out/{step}/{n}"] = got[n]
    np.savez_compressed(file, **arrays)


main(sys.argv[1])
