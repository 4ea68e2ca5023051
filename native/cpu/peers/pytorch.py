"""The jobs of BenchmarkTable of package native/cpu, in PyTorch. Reads the name of
a job a line and writes the least time of its runs in ms, 0 for one it does not
know. The benchmark starts it; nothing else of rlx needs Python.

    PYTHON=python3 go test -run='^$' -bench=Table ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)


def mlp(*layers):
    modules = []
    for i, (inputs, outputs) in enumerate(zip(layers, layers[1:])):
        modules += [torch.nn.ReLU()] * (i > 0) + [torch.nn.Linear(inputs, outputs)]
    return torch.nn.Sequential(*modules)


def inference(batch, *layers):
    model, x = mlp(*layers), torch.randn(batch, layers[0])

    def run():
        with torch.inference_mode():
            model(x)

    return run


def step(batch, *layers):
    """One Adam step on cross-entropy."""
    model = mlp(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    x, labels = torch.randn(batch, layers[0]), torch.randint(layers[-1], (batch,))

    def run():
        optimizer.zero_grad()
        F.cross_entropy(model(x), labels).backward()
        optimizer.step()

    return run


def matmul(n):
    a, b, c = torch.randn(n, n), torch.randn(n, n), torch.empty(n, n)
    return lambda: torch.mm(a, b, out=c)


def unary(f, *dims):
    x = torch.randn(*dims)

    def run():
        with torch.inference_mode():
            f(x)

    return run


def conv(backward):
    x, w = torch.randn(32, 32, 28, 28, requires_grad=backward), torch.randn(64, 32, 3, 3, requires_grad=backward)

    def run():
        y = F.conv2d(x, w, padding=1)
        if backward:
            x.grad = w.grad = None
            (y * y).sum().backward()

    return run


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.q, self.k, self.v = (torch.nn.Linear(width, width) for _ in range(3))
        self.out = torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(torch.nn.Module):
    def __init__(self, vocab, context, width, heads, blocks):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocab, width)
        self.positions = torch.nn.Parameter(torch.zeros(context, width))
        self.blocks = torch.nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, vocab)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions)))


def transformer(batch, length, width, heads):
    block = Block(width, heads)
    start = torch.randn(batch, length, width, requires_grad=True)

    def run():
        block.zero_grad()
        start.grad = None
        x = block(start)
        (x * x).mean().backward()

    return run


def gpt(width):
    """One AdamW step of a language model of two blocks on 8 texts of 64 characters."""
    model = GPT(65, 64, width, 4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
    ids, following = torch.randint(65, (8, 64)), torch.randint(65, (8, 64))

    def run():
        optimizer.zero_grad()
        F.cross_entropy(model(ids).flatten(0, 1), following.flatten()).backward()
        optimizer.step()

    return run


JOBS = {
    "MLP 784-128-10 step": lambda: step(128, 784, 128, 10),
    "MLP 784-512-512-10 step": lambda: step(128, 784, 512, 512, 10),
    "inference 784-128-10 batch 1": lambda: inference(1, 784, 128, 10),
    "inference 784-512-512-10 batch 1": lambda: inference(1, 784, 512, 512, 10),
    "inference 784-128-10 batch 128": lambda: inference(128, 784, 128, 10),
    "inference 784-512-512-10 batch 128": lambda: inference(128, 784, 512, 512, 10),
    "matmul 512": lambda: matmul(512),
    "matmul 1024": lambda: matmul(1024),
    "softmax 4096x1024": lambda: unary(lambda x: F.softmax(x, 1), 4096, 1024),
    "layer norm 4096x1024": lambda: unary(torch.nn.LayerNorm(1024), 4096, 1024),
    "gelu erf 4M": lambda: unary(F.gelu, 4 << 20),
    "gelu tanh 4M": lambda: unary(lambda x: F.gelu(x, approximate="tanh"), 4 << 20),
    "sum along rows": lambda: unary(lambda x: x.sum(1), 4096, 1024),
    "sum along columns": lambda: unary(lambda x: x.sum(0), 4096, 1024),
    "transpose 2048x2048": lambda: unary(lambda x: x.t().contiguous(), 2048, 2048),
    "dropout 4M": lambda: unary(lambda x: F.dropout(x, 0.1), 4 << 20),
    "conv 3x3 32-64 forward": lambda: conv(False),
    "conv 3x3 32-64 backward": lambda: conv(True),
    "GPT step width 64": lambda: gpt(64),
    "GPT step width 256": lambda: gpt(256),
    "transformer block": lambda: transformer(4, 128, 256, 8),
}


serve(JOBS)
