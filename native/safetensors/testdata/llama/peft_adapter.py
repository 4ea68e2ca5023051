"""Writes peft/, an adapter of the tiny model of native/lm/testdata/llama by PEFT's save_pretrained, and expected.safetensors: the
logits of that model with it, and with the adapter of page/, which page.mjs has written, each as PEFT loads it.

    pip install torch==2.15.0 transformers==5.24.0 peft==0.21.2 safetensors
    python peft_adapter.py
"""

import pathlib

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
BASE = HERE.parents[2] / "lm/testdata/llama"
tokens = load_file(BASE / "expected.safetensors")["prompt"].long()[None]


def base():
    return AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)


def logits(model):
    with torch.no_grad():
        return model.eval()(tokens).logits[0].contiguous()


torch.manual_seed(1)
made = get_peft_model(base(), LoraConfig(r=3, lora_alpha=5, use_rslora=True, target_modules=["q_proj", "o_proj", "down_proj"], task_type="CAUSAL_LM"))
for name, value in made.named_parameters():
    if "lora_" in name:
        value.data = torch.randn_like(value) / 4
made.peft_config["default"].base_model_name_or_path = "llama"
made.save_pretrained(HERE / "peft")
(HERE / "peft/README.md").unlink()
out = {"plain": logits(base())}
for folder in ("page", "peft"):
    loaded = PeftModel.from_pretrained(base(), HERE / folder)
    out[folder] = logits(loaded)
assert torch.equal(out["peft"], logits(made))
save_file(out, HERE / "expected.safetensors")
print({name: (value - out["plain"]).abs().max().item() for name, value in out.items()})
