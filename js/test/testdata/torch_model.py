# Writes torch_model.safetensors: the state dictionary of a model, an input and its result, as "x" and "y" of the metadata.
# Python 3.11, PyTorch 2.15:
#
#   python3 js/test/testdata/torch_model.py js/test/testdata/torch_model.safetensors

import json
import struct
import sys

import torch
from torch import nn


class Model(nn.Module):
    """Each kind of weight with another layout, and squares, whose layout no shape gives away."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 4)
        self.conv = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 3, 3, padding=1))
        self.up = nn.ConvTranspose2d(3, 3, 2, stride=2)
        self.block = nn.TransformerEncoderLayer(4, 2, 4, dropout=0, batch_first=True, norm_first=True, activation="gelu")
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.gru = nn.GRU(4, 4, batch_first=True)
        self.square = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2).half()

    def forward(self, ids):
        x = self.table(ids)
        x = x + self.up(self.conv(x[:, None])).mean((1, 3)).reshape(x.shape[0], -1, 1)[:, : x.shape[1]]
        x = self.square(self.gru(self.lstm(self.block(x))[0])[0])
        return nn.functional.linear(x, self.head.weight.float(), self.head.bias.float())


def tensors(state):
    types = {torch.float32: "F32", torch.float16: "F16", torch.int64: "I64"}
    header, data = {}, b""
    for name, x in state.items():
        bits = x.contiguous().numpy().tobytes()
        header[name] = {"dtype": types[x.dtype], "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    return header, data


torch.manual_seed(1)
model = Model()
for _ in range(3):  # so that the running statistics are not those of the beginning
    model(torch.randint(4, (2, 6)))
model.eval()
ids = torch.tensor([[0, 1, 2, 3, 0, 1], [3, 3, 2, 1, 0, 2]])
with torch.no_grad():
    y = model(ids)
header, data = tensors(model.state_dict())
header["__metadata__"] = {"x": json.dumps(ids.flatten().tolist()), "y": json.dumps([round(v, 6) for v in y.flatten().tolist()])}
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + data)
