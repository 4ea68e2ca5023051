"""Writes a tiny random model of each family into a folder beside this file, with the logits and the
greedy continuation that transformers computes in f32, and the same model as a GGUF file, laid out as
llama.cpp's convert_hf_to_gguf.py does.

    pip install torch==2.15.0 transformers==5.24.0 safetensors gguf==0.19.0
    python models.py

Weights are random, and the configurations odd on purpose.
"""

import json
import os
import shutil
import sys

import gguf
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = 20
GREEDY = 16
SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=1, head_dim=6, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0)
PACKED = dict(SIZES, intermediate_size=64, num_key_value_heads=2, head_dim=8)  # rows of whole blocks of 32

MODELS = {
    "llama": ("llama", "f32", dict(PACKED, attention_bias=True, mlp_bias=True, tie_word_embeddings=False, rope_parameters=dict(
        rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16))),
    "smollm": ("llama", "bf16", dict(SIZES, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16))),
    "mistral": ("mistral", "f16", dict(SIZES, num_key_value_heads=2, sliding_window=6, tie_word_embeddings=False)),
    "mixtral": ("mixtral", "f32", dict(SIZES, intermediate_size=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=None, tie_word_embeddings=False)),
    "qwen2": ("qwen2", "bf16", {k: v for k, v in dict(SIZES, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True, use_sliding_window=True,
              sliding_window=5, max_window_layers=1).items() if k != "head_dim"}),
    "qwen3": ("qwen3", "f32", dict(SIZES, head_dim=10, tie_word_embeddings=False, rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=2.0))),
    "gemma": ("gemma", "bf16", dict(SIZES, head_dim=12)),
    "gemma2": ("gemma2", "f32", dict(SIZES, query_pre_attn_scalar=10, sliding_window=6, attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma3": ("gemma3_text", "bf16", dict(SIZES, num_hidden_layers=3, query_pre_attn_scalar=6, sliding_window=5,
               layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=dict(
        full_attention=dict(rope_type="linear", rope_theta=1e5, factor=8.0), sliding_attention=dict(rope_type="default", rope_theta=1e3)))),
    "phi3": ("phi3", "f32", {k: v for k, v in dict(SIZES, num_attention_heads=4, num_key_value_heads=2, original_max_position_embeddings=16, tie_word_embeddings=False,
             sliding_window=9, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, partial_rotary_factor=0.5,
                                                    short_factor=[1.0, 1.5], long_factor=[1.25, 3.0], original_max_position_embeddings=16)).items() if k != "head_dim"}),
    "qwen2_moe": ("qwen2_moe", "f32", {k: v for k, v in dict(SIZES, num_key_value_heads=2, moe_intermediate_size=8, shared_expert_intermediate_size=12, num_experts=5,
                  num_experts_per_tok=3, norm_topk_prob=False, use_sliding_window=False, tie_word_embeddings=False).items() if k != "head_dim"}),
    "qwen3_moe": ("qwen3_moe", "bf16", dict(SIZES, head_dim=10, moe_intermediate_size=12, num_experts=6, num_experts_per_tok=2, norm_topk_prob=True, tie_word_embeddings=True)),
    "olmo2": ("olmo2", "bf16", {k: v for k, v in dict(SIZES, num_key_value_heads=2, tie_word_embeddings=False).items() if k != "head_dim"}),
    "olmo3": ("olmo3", "bf16", {k: v for k, v in dict(SIZES, num_hidden_layers=4, intermediate_size=16, num_key_value_heads=2, tie_word_embeddings=False, sliding_window=6,
              rope_parameters=dict(full_attention=dict(rope_type="yarn", rope_theta=2e4, factor=4.0, original_max_position_embeddings=16),
                                   sliding_attention=dict(rope_type="default", rope_theta=2e4))).items() if k != "head_dim"}),
    "olmoe": ("olmoe", "f32", {k: v for k, v in dict(SIZES, intermediate_size=12, num_key_value_heads=2, num_experts=5, num_experts_per_tok=2, norm_topk_prob=False,
              tie_word_embeddings=False).items() if k != "head_dim"}),
    "granite": ("granite", "f32", {k: v for k, v in dict(SIZES, num_key_value_heads=2, tie_word_embeddings=True, embedding_multiplier=3.0, residual_multiplier=0.6,
                attention_multiplier=0.2, logits_scaling=1.5, attention_bias=True).items() if k != "head_dim"}),
    "smollm3": ("smollm3", "bf16", {k: v for k, v in dict(SIZES, num_hidden_layers=4, intermediate_size=24, num_key_value_heads=2, tie_word_embeddings=True,
                rope_parameters=dict(rope_type="default", rope_theta=2e4)).items() if k != "head_dim"}),
    "starcoder2": ("starcoder2", "f32", {k: v for k, v in dict(SIZES, num_key_value_heads=2, sliding_window=7, tie_word_embeddings=True).items() if k != "head_dim"}),
    "cohere": ("cohere", "bf16", {k: v for k, v in dict(SIZES, num_key_value_heads=2, logit_scale=0.7, attention_bias=True).items() if k != "head_dim"}),
    "cohere2": ("cohere2", "bf16", dict(SIZES, num_hidden_layers=4, intermediate_size=16, logit_scale=1.3, sliding_window=6, sliding_window_pattern=3)),
    "ernie4_5": ("ernie4_5", "bf16", dict(SIZES, use_bias=True)),
    "exaone4": ("exaone4", "bf16", dict(SIZES, num_hidden_layers=4, intermediate_size=16, sliding_window=5, sliding_window_pattern=4)),
    "glm4": ("glm4", "bf16", dict(SIZES, head_dim=12, attention_bias=True, rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5))),
    "seed_oss": ("seed_oss", "bf16", dict(SIZES, head_dim=10, attention_out_bias=True, mlp_bias=True)),
    "stablelm": ("stablelm", "bf16", {k: v for k, v in dict(SIZES, num_key_value_heads=2, use_qkv_bias=True, rope_parameters=dict(
        rope_type="default", rope_theta=1e4, partial_rotary_factor=0.5)).items() if k != "head_dim"}),
    "arcee": ("arcee", "bf16", dict(SIZES, head_dim=10, attention_bias=True, mlp_bias=True)),
    "falcon": ("falcon", "bf16", {k: v for k, v in dict(SIZES, hidden_size=30, num_attention_heads=5, ffn_hidden_size=44, bias=True).items()
               if k not in ("head_dim", "num_key_value_heads", "intermediate_size")}),
    "gpt_neox": ("gpt_neox", "bf16", {k: v for k, v in dict(SIZES, rope_parameters=dict(rope_type="default", rope_theta=1e3, partial_rotary_factor=0.25)).items()
                 if k not in ("head_dim", "num_key_value_heads")}),
    "gptj": ("gptj", "bf16", dict(vocab_size=64, n_embd=36, n_layer=2, n_head=3, n_positions=64, rotary_dim=8, n_inner=40, bos_token_id=1, eos_token_id=2)),
    "nemotron": ("nemotron", "bf16", dict(SIZES, head_dim=12, num_key_value_heads=2, attention_bias=True, mlp_bias=True)),
    "phi": ("phi", "bf16", {k: v for k, v in dict(SIZES, num_key_value_heads=2, intermediate_size=96).items() if k != "head_dim"}),
    "gpt2": ("gpt2", "f32", dict(vocab_size=64, n_embd=24, n_layer=2, n_head=3, n_positions=64, bos_token_id=1, eos_token_id=2)),
}
SEEDS = ["gemma", "gemma2", "gemma3", "gpt2", "llama", "mistral", "mixtral", "phi3", "qwen2", "qwen3", "smollm"]
SEEDS += ["qwen2_moe", "qwen3_moe", "olmo2", "granite", "smollm3", "starcoder2", "olmo3", "olmoe"]
SEEDS += [name for name in MODELS if name not in SEEDS]
LAYER_NORMS = dict(starcoder2="norm_epsilon", cohere="layer_norm_eps", cohere2="layer_norm_eps", stablelm="layer_norm_eps", gpt2="layer_norm_epsilon",
                   falcon="layer_norm_epsilon", gpt_neox="layer_norm_eps", nemotron="norm_eps", phi="layer_norm_eps")
DTYPES = dict(f32=torch.float32, f16=torch.float16, bf16=torch.bfloat16)


def build(name):
    kind, dtype, options = MODELS[name]
    torch.manual_seed(SEEDS.index(name) + 1)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **options), attn_implementation="eager")
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, 1 / p.shape[-1] ** 0.5 * (1.5 if "embed" in key or "wte" in key else 1))
            elif "norm" in key or "ln_" in key and key.endswith("weight"):
                p.copy_((0 if "gemma" in name else 1) + 0.3 * torch.randn(p.shape))
            else:
                p.normal_(0, 0.3)
            p.copy_(p.to(DTYPES[dtype]).float())
    return model.eval()


AS_GGUF = {  # what llama.cpp fixes for an architecture, in place of the configuration's
    "qwen2": dict(use_sliding_window=False, layer_types=None),
    "gemma2": dict(query_pre_attn_scalar=6),  # the size of a head
    "gemma3": dict(layer_types=["sliding_attention"] * 3),  # each sixth layer is full
}


def as_gguf(model, name):
    """The model that a GGUF file with the weights is."""
    config = type(model.config)(**dict(model.config.to_dict(), **AS_GGUF[name]))
    other = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    other.load_state_dict(model.state_dict())
    return other


def expect(model, name, folder):
    prompt = torch.randint(3, 64, (1, PROMPT), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        logits = model(prompt, use_cache=False).logits[0]
        tokens = prompt
        for _ in range(GREEDY):
            last = model(tokens, use_cache=False).logits[0, -1]
            top = last.topk(2).values
            assert top[0] - top[1] > 1e-3, f"{name}: the greedy choice is not clear, take another seed"
            tokens = torch.cat([tokens, last.argmax()[None, None]], 1)
        of_gguf = as_gguf(model, name)(prompt, use_cache=False).logits[0] if name in AS_GGUF else None
    tensors = {"prompt": prompt[0].int(), "logits": logits.contiguous(), "greedy": tokens[0, PROMPT:].int()}
    if of_gguf is not None:
        tensors["of_gguf"] = of_gguf.contiguous()
    save_file(tensors, os.path.join(folder, "expected.safetensors"), {"transformers": transformers.__version__, "torch": torch.__version__})


def write_gguf(model, name, path):
    """The file that llama.cpp's convert_hf_to_gguf.py would write of the weights, in f32 or, for llama, also in blocks."""
    config, state = model.config, {k: v.detach().float().numpy() for k, v in model.state_dict().items()}
    arch = {"smollm": "llama", "mistral": "llama", "mixtral": "llama", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe", "olmo3": "olmo2", "cohere": "command-r", "gpt_neox": "gptneox", "phi": "phi2"}.get(name, name)
    w = gguf.GGUFWriter(path, arch)
    gpt = arch == "gpt2"
    heads = config.n_head if gpt else config.num_attention_heads
    kv = heads if gpt or name == "gpt_neox" else 1 if name == "falcon" else config.num_key_value_heads
    width, layers = (config.n_embd, config.n_layer) if gpt else (config.hidden_size, config.num_hidden_layers)
    size = width // heads if gpt else getattr(config, "head_dim", None) or width // heads
    w.add_block_count(layers)
    w.add_embedding_length(width)
    w.add_feed_forward_length(4 * width if gpt else config.ffn_hidden_size if name == "falcon" else config.intermediate_size)
    if name in ("qwen2_moe", "qwen3_moe"):
        w.add_expert_feed_forward_length(config.moe_intermediate_size)
    if name == "qwen2_moe":
        w.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if name == "granite":
        w.add_embedding_scale(config.embedding_multiplier)
        w.add_residual_scale(config.residual_multiplier)
        w.add_attention_scale(config.attention_multiplier)
        w.add_logit_scale(config.logits_scaling)
    w.add_context_length(64)
    w.add_vocab_size(64)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    if name in LAYER_NORMS:
        w.add_layer_norm_eps(getattr(config, LAYER_NORMS[name]))
    else:
        w.add_layer_norm_rms_eps(config.rms_norm_eps)
    if not gpt:
        w.add_key_length(size)
        w.add_value_length(size)
        rope = config.rope_parameters
        full = rope.get("full_attention", rope)
        w.add_rope_freq_base(full["rope_theta"])
        w.add_rope_dimension_count(int(size * full.get("partial_rotary_factor", 1)))
        if full["rope_type"] in ("linear", "yarn"):
            w.add_rope_scaling_type(gguf.RopeScalingType(full["rope_type"]))
            w.add_rope_scaling_factor(full["factor"])
            w.add_rope_scaling_orig_ctx_len(full.get("original_max_position_embeddings", 64))
        if full["rope_type"] == "llama3":
            w.add_tensor("rope_freqs.weight", llama3_divisors(full, size))
        if full["rope_type"] == "longrope":
            w.add_rope_scaling_orig_ctx_len(16)
            w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(64 / 16) / np.log(16))))
            w.add_tensor("rope_factors_long.weight", np.array(full["long_factor"], np.float32))
            w.add_tensor("rope_factors_short.weight", np.array(full["short_factor"], np.float32))
    if name == "gemma2":
        w.add_attn_logit_softcapping(config.attn_logit_softcapping)
        w.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "gemma3":
        w.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    if name in ("phi3", "mistral", "starcoder2", "olmo3", "cohere2", "exaone4", "gemma2", "gemma3"):
        w.add_sliding_window(config.sliding_window)
    if name == "exaone4":
        w.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    if name == "cohere2":
        w.add_sliding_window_pattern(3)
    if name == "gpt_neox":
        w.add_parallel_residual(config.use_parallel_residual)
    if name in ("cohere", "cohere2"):
        w.add_logit_scale(config.logit_scale)
    if name in ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe"):
        w.add_expert_count(getattr(config, "num_local_experts", None) or config.num_experts)
        w.add_expert_used_count(config.num_experts_per_tok)
    names = gguf.get_tensor_name_map({v: k for k, v in gguf.MODEL_ARCH_NAMES.items()}[arch], layers)
    for key, x in state.items():
        if key == "lm_head.weight" and config.tie_word_embeddings or key.endswith((".attn.bias", ".masked_bias")):
            continue
        stem, end = key.rsplit(".", 1)
        if ".experts." in key:  # gate and up side by side, of all experts
            stem = key
            block = "blk.%d." % int(key.split(".")[2])
            if key.endswith("gate_up_proj"):
                half = x.shape[1] // 2
                w.add_tensor(block + "ffn_gate_exps.weight", x[:, :half].copy())
                w.add_tensor(block + "ffn_up_exps.weight", x[:, half:].copy())
            else:
                w.add_tensor(block + "ffn_down_exps.weight", x)
            continue
        if name in ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe") and stem.endswith("mlp.gate"):
            to = "blk.%d.ffn_gate_inp" % int(key.split(".")[2])
        else:
            to = names.get_name(stem)
        assert to, key
        if "gemma" in arch and "norm" in stem or arch == "nemotron" and "norm" in stem and end == "weight":
            x = x + 1
        if name == "gpt_neox" and "query_key_value" in stem:  # of each head to of all together
            x = x.reshape(heads, 3, size, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
        if gpt and x.ndim == 2 and "wte" not in key and "wpe" not in key and "lm_head" not in key:
            x = x.T
        if arch in ("llama", "granite", "smollm3", "arcee") and stem.endswith(("q_proj", "k_proj")):  # halves to neighbours, per head
            n = heads if stem.endswith("q_proj") else kv
            x = x.reshape(n, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)
        x = np.ascontiguousarray(x)
        kind = {"llama": {"ffn_down": "Q4_1", "attn_output": "Q8_0", "ffn_up": "Q4_0", "token_embd": "Q8_0"}}.get(name, {}).get(to.split(".")[-1]) if x.ndim == 2 else None
        if kind:
            kind = gguf.GGMLQuantizationType[kind]
            w.add_tensor(f"{to}.{end}", gguf.quants.quantize(x, kind), raw_dtype=kind)
        else:
            w.add_tensor(f"{to}.{end}", x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def llama3_divisors(rope, size):
    """As convert_hf_to_gguf.py computes rope_freqs."""
    freqs = 1 / rope["rope_theta"] ** (torch.arange(0, size, 2).float() / size)
    factor, low, high, old = rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    out = []
    for f in freqs:
        wave = 2 * np.pi / f
        smooth = (old / wave - low) / (high - low)
        out.append(factor if wave > old / low else 1 if wave < old / high else 1 / ((1 - smooth) / factor + smooth))
    return np.array([float(x) for x in out], np.float32)


def dequantized(model, path):
    """Puts the packed weights of a GGUF file back into the model, so that its logits are those of the file."""
    reader = gguf.GGUFReader(path)
    back = {"ffn_down": "mlp.down_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.up_proj"}
    state = model.state_dict()
    for t in reader.tensors:
        if t.tensor_type in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            continue
        x = torch.from_numpy(gguf.quants.dequantize(t.data, t.tensor_type).copy())
        part = t.name.split(".")
        key = "model.embed_tokens.weight" if part[0] == "token_embd" else f"model.layers.{part[1]}.{back[part[2]]}.weight"
        state[key].copy_(x)


def main():
    for name in sys.argv[1:] or MODELS:
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        model = build(name)
        path = os.path.join(folder, "model.gguf")
        if name != "gptj":
            write_gguf(model, name, path)
        if name == "llama":
            with torch.no_grad():
                dequantized(model, path)
        expect(model, name, folder)
        model.to(DTYPES[MODELS[name][1]]).save_pretrained(folder)
        for extra in ("generation_config.json",):
            if os.path.exists(os.path.join(folder, extra)):
                os.remove(os.path.join(folder, extra))
        print(name, {f: os.path.getsize(os.path.join(folder, f)) for f in sorted(os.listdir(folder))}, flush=True)


if __name__ == "__main__":
    main()
