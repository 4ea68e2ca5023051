# Writes adapter/: an adapter by PEFT of an MLP, and expected.safetensors with its base weights, an input
# and the results with and without the adapter.
#
#   pip install torch==2.15.0 peft==0.21.2
#   python adapter.py

import os

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

torch.manual_seed(1)


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Module()
        self.body.up = torch.nn.Linear(3, 5)
        self.body.down = torch.nn.Linear(5, 4)

    def forward(self, x):
        return self.body.down(torch.relu(self.body.up(x)))


model = MLP()
state = {name: value.clone() for name, value in model.state_dict().items()}
x = torch.randn(2, 3)
before = model(x).detach()
tuned = get_peft_model(model, LoraConfig(r=2, lora_alpha=6, target_modules=["up", "down"]))
for name, value in tuned.named_parameters():
    if "lora_" in name:
        value.data = torch.randn_like(value) / 2
folder = os.path.join(os.path.dirname(__file__), "adapter")
tuned.save_pretrained(folder)
os.remove(os.path.join(folder, "README.md"))
save_file({**state, "x": x, "before": before, "after": tuned(x).detach().contiguous()}, os.path.join(folder, "expected.safetensors"))
