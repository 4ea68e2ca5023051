"""Writes GGUF files of encoders beside this file, as llama.cpp's convert_hf_to_gguf.py does: of the folder minilm, and of a
wider random model whose matrices are packed in blocks, with what transformers computes by it in f32.

    pip install torch==2.15.0 transformers==5.24.0 tokenizers safetensors pillow==13.0.0 gguf==0.19.0
    python encoders.py
"""

import json
import os
import tempfile

import gguf
import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from models import HERE, TEXT, TEXTS, expect_text

# Those that llama.cpp keeps in f32 in files of 16 bits.
ALWAYS_F32 = ("token_types", "position_embd", "token_embd_norm")


def write(path, config, weights, tokenizer, pooling, kind, older=False):
    w = gguf.GGUFWriter(path, "bert")
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_head_count(config["num_attention_heads"])
    w.add_layer_norm_eps(config["layer_norm_eps"])
    w.add_causal_attention(False)
    w.add_pooling_type(pooling)
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.token_to_id)
    special = {t.content for t in tokenizer.get_added_tokens_decoder().values()}
    w.add_tokenizer_model("bert")
    w.add_tokenizer_pre("default")
    w.add_token_type_count(config["type_vocab_size"])
    w.add_token_list([t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in vocabulary])
    w.add_token_types([gguf.TokenType.UNKNOWN if t == "[UNK]" else gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL for t in vocabulary])
    if older:  # as before gguf 0.10
        for token, key in {"[UNK]": "unknown", "[CLS]": "cls", "[SEP]": "seperator", "[PAD]": "padding", "[MASK]": "mask"}.items():
            w.add_uint32(f"tokenizer.ggml.{key}_token_id", tokenizer.token_to_id(token))
    else:
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.save(os.path.join(folder, "tokenizer.json"))
            with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
                json.dump({"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]", "mask_token": "[MASK]"}, f)
            gguf.SpecialVocab(folder).add_to_gguf(w)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, x in weights.items():
        if "pooler" in name:
            continue
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        x = x.float().numpy()
        if x.ndim == 1 or any(part in to for part in ALWAYS_F32):
            w.add_tensor(to, x)
        elif kind == gguf.GGMLQuantizationType.F16:
            w.add_tensor(to, x.astype(np.float16))
        else:
            w.add_tensor(to, gguf.quants.quantize(x, kind), raw_dtype=kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def tokenizer_of(folder):
    return Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))


def main():
    minilm = os.path.join(HERE, "minilm")
    config = json.load(open(os.path.join(minilm, "config.json")))
    write(os.path.join(minilm, "model.gguf"), config, load_file(os.path.join(minilm, "model.safetensors")), tokenizer_of(minilm), gguf.PoolingType.MEAN, gguf.GGMLQuantizationType.F16, older=True)

    torch.manual_seed(5)
    kind, folder = gguf.GGMLQuantizationType.Q8_0, os.path.join(HERE, "packed")
    os.makedirs(folder, exist_ok=True)
    model = tf.BertModel(tf.BertConfig(**dict(TEXT, hidden_size=32, num_attention_heads=4, intermediate_size=64, num_hidden_layers=1))).eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.3)
            if p.dim() > 1 and "position" not in name and "token_type" not in name:
                p.copy_(torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(p.numpy(), kind), kind)))
        out = expect_text(model, "packed", folder)
        out.pop("pooled")
        vectors = []
        for text in TEXTS:  # those of the first token
            t = tokenizer_of(folder)
            t.enable_truncation(16)
            hidden = model(torch.tensor([t.encode(text).ids])).last_hidden_state[0, 0]
            vectors.append(hidden / hidden.norm())
        out["vectors"] = torch.stack(vectors)
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(folder, "expected.safetensors"))
    write(os.path.join(folder, "model.gguf"), model.config.to_dict(), model.state_dict(), tokenizer_of(folder), gguf.PoolingType.CLS, kind)
    os.remove(os.path.join(folder, "tokenizer.json"))


if __name__ == "__main__":
    main()
