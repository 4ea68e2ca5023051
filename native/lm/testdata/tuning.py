"""Adds to tuning.json, which tuning.mjs has written, the losses of the same steps by PyTorch: the weights of llama/model.gguf as
gguf's quants unpack them, the matrices of tuning-begin.safetensors, autograd, and torch.optim.Adam.

    pip install torch==2.15.0 gguf==0.19.0
    python tuning.py
"""

import json
import pathlib

import gguf
import numpy as np
import torch
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
WIDTH, LAYERS, HEADS, KV, SIZE, EPSILON, BASE = 32, 2, 4, 2, 8, 1e-6, 500.0

base = {t.name: torch.tensor(np.array(gguf.quants.dequantize(t.data, t.tensor_type))) for t in gguf.GGUFReader(HERE / "llama/model.gguf").tensors}
raw = (HERE / "tuning-begin.safetensors").read_bytes()
begin = 8 + int.from_bytes(raw[:8], "little")
lora = {
    name: torch.tensor(np.frombuffer(raw, "<f4", (at[1] - at[0]) // 4, begin + at[0]).reshape(entry["shape"]).copy(), requires_grad=True)
    for name, entry in json.loads(raw[8:begin]).items() if name.startswith("model/") for at in [entry["data_offsets"]]
}
run = json.loads((HERE / "tuning.json").read_text())
scale = run["alpha"] / run["rank"]


def linear(x, i, name, module):
    a, b = (lora[f"model/layers/{i}/{module}/lora_{m}/weight"] for m in "AB")
    return F.linear(x, base[f"blk.{i}.{name}.weight"], base[f"blk.{i}.{name}.bias"]) + scale * (x @ a @ b)


def norm(x, name):
    return F.rms_norm(x, (WIDTH,), base[name], EPSILON)


def rotated(x):
    angle = torch.arange(x.shape[-2])[:, None] * BASE ** (-torch.arange(0, SIZE, 2) / SIZE) / base["rope_freqs.weight"]
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos(), angle.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def loss(tokens, following):
    x = base["token_embd.weight"][tokens]
    heads = lambda y: y.unflatten(-1, (-1, SIZE)).transpose(1, 2)
    for i in range(LAYERS):
        y = norm(x, f"blk.{i}.attn_norm.weight")
        q, k, v = (heads(linear(y, i, f"attn_{m}", f"self_attn/{m}_proj")) for m in "qkv")
        k, v = (z.repeat_interleave(HEADS // KV, 1) for z in (rotated(k), v))
        y = F.scaled_dot_product_attention(rotated(q), k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).flatten(-2), i, "attn_output", "self_attn/o_proj")
        y = norm(x, f"blk.{i}.ffn_norm.weight")
        y = F.silu(linear(y, i, "ffn_gate", "mlp/gate_proj")) * linear(y, i, "ffn_up", "mlp/up_proj")
        x = x + linear(y, i, "ffn_down", "mlp/down_proj")
    return F.cross_entropy((norm(x, "output_norm.weight") @ base["output.weight"].T).flatten(0, 1), following.flatten())


adam = torch.optim.Adam(lora.values(), lr=run["rate"])
run["torch"] = []
for batch in run["batches"]:
    tokens, following = (torch.tensor(batch[k]).reshape(run["rows"], run["length"]) for k in ("tokens", "next"))
    adam.zero_grad()
    of = loss(tokens, following)
    of.backward()
    adam.step()
    run["torch"].append(of.item())
print(max(abs(a - b) for a, b in zip(run["losses"], run["torch"])))
(HERE / "tuning.json").write_text(json.dumps(run, separators=(",", ":")) + "\n")
