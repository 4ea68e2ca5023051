"""The models of package ir/irtest/families in PyTorch: training steps by AdamW with the same
shapes. Reads "eager NAME" or "compile NAME" a line and writes the least time of its runs in ms,
0 for a family that it does not have. Benchmarks start it; nothing else of rlx needs Python.

    PYTHON=python3 go test -run='^$' -bench=Families -timeout=2h ./native/cpu
"""
import functools
import os
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

from torch import nn


# By how much batches, points and edges are multiplied, as the argument of Family.Loss.
TIMES = int(os.environ.get("RLX_BENCH_TIMES", "1"))


class Family(nn.Module):
    """A model whose forward pass returns the loss. Inputs are buffers."""

    def put(self, name, *dims):
        self.register_buffer(name, torch.rand(*dims) - 0.5)

    def put_images(self, name, *dims):
        self.register_buffer(name, (torch.rand(*dims) - 0.5).to(memory_format=torch.channels_last))

    def ids(self, name, below, *dims):
        self.register_buffer(name, torch.randint(below, dims))


def conv_norm(i, o, window, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(i, o, window, stride, window // 2, groups=groups), nn.BatchNorm2d(o))


class Residual(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * TIMES, 3, 64, 64)
        self.ids("labels", 100, 8 * TIMES)
        self.stem, self.blocks, channels = conv_norm(3, 32, 7, 2), nn.ModuleList(), 32
        for i in range(4):
            o, stride = 32 << i, min(1 + i, 2)
            body = nn.Sequential(conv_norm(channels, o, 3, stride), nn.ReLU(), conv_norm(o, o, 3))
            self.blocks.append(nn.ModuleList([body, conv_norm(channels, o, 1, stride) if stride > 1 else nn.Identity()]))
            channels = o
        self.head = nn.Linear(channels, 100)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = F.max_pool2d(F.relu(self.stem(self.x)), 3, 2, 1)
        for body, skip in self.blocks:
            x = F.relu(body(x) + skip(x))
        return F.cross_entropy(self.head(x.mean((2, 3))), self.labels)


class Depthwise(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * TIMES, 3, 64, 64)
        self.ids("labels", 100, 8 * TIMES)
        layers, channels = [conv_norm(3, 32, 3, 2), nn.ReLU6()], 32
        for o, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1)):
            layers += [conv_norm(channels, channels, 3, stride, channels), nn.ReLU6(), conv_norm(channels, o, 1), nn.ReLU6()]
            channels = o
        self.body, self.head = nn.Sequential(*layers), nn.Linear(channels, 100)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        return F.cross_entropy(self.head(self.body(self.x).mean((2, 3))), self.labels)


class ChannelNorm(nn.LayerNorm):
    """Normalises channels of [batch, channels, height, width]."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.deep, self.norm = nn.Conv2d(channels, channels, 7, padding=3, groups=channels), nn.LayerNorm(channels)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.ones(channels))

    def forward(self, x):
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class ConvNeXt(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * TIMES, 3, 64, 64)
        self.ids("labels", 100, 8 * TIMES)
        self.body = nn.Sequential(
            nn.Conv2d(3, 64, 4, 4), ChannelNorm(64), ConvNeXtBlock(64), ConvNeXtBlock(64),
            ChannelNorm(64), nn.Conv2d(64, 128, 2, 2), ConvNeXtBlock(128), ConvNeXtBlock(128),
        )
        self.head = nn.Linear(128, 100)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        return F.cross_entropy(self.head(self.body(self.x).mean((2, 3))), self.labels)


class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (f(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class UNetBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, i), nn.GroupNorm(8, o)
        self.conv1, self.conv2, self.time = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1), nn.Linear(64, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class UNet(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 4 * TIMES, 3, 32, 32)
        self.put_images("noise", 4 * TIMES, 3, 32, 32)
        self.put("t", 4 * TIMES, 32)
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.start, self.shrink, self.grow = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1), nn.Conv2d(64, 32, 3, padding=1)
        self.down1, self.down2, self.up2, self.up1 = UNetBlock(32, 32), UNetBlock(64, 64), UNetBlock(128, 64), UNetBlock(64, 32)
        self.norm, self.attend = nn.GroupNorm(8, 64), Attend(64, 4)
        self.last, self.out = nn.GroupNorm(8, 32), nn.Conv2d(32, 3, 3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        t = self.time(self.t)
        first = self.down1(self.start(self.x), t)
        second = self.down2(self.shrink(first), t)
        h = self.attend(self.norm(second).flatten(2).transpose(1, 2))
        h = second + h.transpose(1, 2).reshape(second.shape)
        h = self.grow(F.interpolate(self.up2(torch.cat([h, second], 1), t), scale_factor=2))
        h = self.up1(torch.cat([h, first], 1), t)
        return F.mse_loss(self.out(F.silu(self.last(h))), self.noise)


class Feed(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class ViT(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * TIMES, 3, 64, 64)
        self.ids("labels", 100, 8 * TIMES)
        self.patches, self.positions = nn.Conv2d(3, 192, 8, 8), nn.Parameter(torch.zeros(64, 192))
        make = lambda: nn.ModuleList([nn.LayerNorm(192), Attend(192, 3), nn.LayerNorm(192), Feed(192)])
        self.blocks, self.norm, self.head = nn.ModuleList(make() for _ in range(4)), nn.LayerNorm(192), nn.Linear(192, 100)

    def forward(self):
        x = self.patches(self.x).flatten(2).transpose(1, 2) + self.positions
        for norm1, attend, norm2, feed in self.blocks:
            x = x + attend(norm1(x))
            x = x + feed(norm2(x))
        return F.cross_entropy(self.head(self.norm(x).mean(1)), self.labels)


class Bert(Family):
    def __init__(self):
        super().__init__()
        self.ids("tokens", 1000, 8 * TIMES, 128)
        self.ids("lengths", 128, 8 * TIMES)
        self.ids("labels", 1000, 8 * TIMES, 128)
        self.table, self.positions = nn.Embedding(1000, 128), nn.Parameter(torch.zeros(128, 128))
        make = lambda: nn.ModuleList([Attend(128, 4), nn.LayerNorm(128), Feed(128), nn.LayerNorm(128)])
        self.norm, self.blocks, self.head = nn.LayerNorm(128), nn.ModuleList(make() for _ in range(2)), nn.Linear(128, 1000)

    def forward(self):
        mask = (torch.arange(128, device=self.lengths.device) <= self.lengths[:, None])[:, None, None]
        x = F.dropout(self.norm(self.table(self.tokens) + self.positions), 0.1)
        for attend, norm1, feed, norm2 in self.blocks:
            x = norm1(x + F.dropout(attend(x, mask), 0.1))
            x = norm2(x + F.dropout(feed(x), 0.1))
        return F.cross_entropy(self.head(x).flatten(0, 1), self.labels.flatten())


def rotate(x, cos, sin):
    u, v = x.chunk(2, -1)
    return torch.cat([u * cos - v * sin, v * cos + u * sin], -1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, shared):
        super().__init__()
        self.heads, self.shared, line = heads, shared, functools.partial(nn.Linear, bias=False)
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.out = line(width, width), line(width, width)
        self.k, self.v = line(width, width * shared // heads), line(width, width * shared // heads)
        self.gate, self.up, self.down = line(width, 512), line(width, 512), line(512, width)

    def forward(self, x, cos, sin):
        h, split = self.norm1(x), lambda y, n: y.view(*x.shape[:2], n, -1).transpose(1, 2)
        q, k = rotate(split(self.q(h), self.heads), cos, sin), rotate(split(self.k(h), self.shared), cos, sin)
        y = F.scaled_dot_product_attention(q, k, split(self.v(h), self.shared), is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(Family):
    def __init__(self):
        super().__init__()
        self.ids("tokens", 5003, 4 * TIMES, 128)
        self.ids("labels", 5003, 4 * TIMES, 128)
        self.table, self.blocks = nn.Embedding(5003, 192), nn.ModuleList(LlamaBlock(192, 6, 2) for _ in range(2))
        self.norm, self.head = nn.RMSNorm(192), nn.Linear(192, 5003, bias=False)
        angles = torch.arange(128)[:, None] * 10000 ** (-torch.arange(16) / 16)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self):
        x = self.table(self.tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), self.labels.flatten())


class Mixture(Family):
    """Tokens beyond the capacity of an expert are dropped by a slot past the end."""

    def __init__(self):
        super().__init__()
        self.tokens, self.capacity, self.experts, width = 1024 * TIMES, 512 * TIMES, 8, 128
        self.put("x", self.tokens, width)
        self.ids("labels", 100, self.tokens)
        self.norm, self.router, self.head = nn.LayerNorm(width), nn.Linear(width, 8, bias=False), nn.Linear(width, 100)
        self.up, self.down = (nn.Parameter(torch.randn(8, i, o) * i**-0.5) for i, o in ((width, 4 * width), (4 * width, width)))

    def forward(self):
        h = self.norm(self.x)
        chance = self.router(h).softmax(1)
        weight, expert = chance.topk(2)
        weight = weight / weight.sum(1, keepdim=True)
        hot = F.one_hot(expert, self.experts).transpose(0, 1).reshape(-1, self.experts)
        place = ((hot.cumsum(0) - 1) * hot).sum(1).view(2, -1).T
        rows = self.experts * self.capacity
        slot = torch.where(place < self.capacity, expert * self.capacity + place, rows).T.flatten()
        packed = h.new_zeros(rows + 1, h.shape[1]).index_copy(0, slot, h.repeat(2, 1))[:rows]
        y = torch.bmm(F.gelu(torch.bmm(packed.view(self.experts, self.capacity, -1), self.up)), self.down).flatten(0, 1)
        y = torch.cat([y, y.new_zeros(1, y.shape[1])])[slot].view(2, self.tokens, -1)
        y = self.x + (y * weight.T[:, :, None]).sum(0)
        share = F.one_hot(expert[:, 0], self.experts).float().mean(0)
        return F.cross_entropy(self.head(y), self.labels) + 0.01 * 8 * (share * chance.mean(0)).sum()


class Causal(nn.Conv1d):
    def __init__(self, i, o, window, dilation=1, groups=1):
        super().__init__(i, o, window, dilation=dilation, groups=groups)

    def forward(self, x):
        return super().forward(F.pad(x, ((self.kernel_size[0] - 1) * self.dilation[0], 0)))


class Mamba(Family):
    """The scan doubles its steps, as a loop in Python is slower."""

    def __init__(self):
        super().__init__()
        self.put("x", 4 * TIMES, 128, 64)
        self.ids("labels", 100, 4 * TIMES, 128)
        self.norm, self.start, self.conv = nn.LayerNorm(64), nn.Linear(64, 256), Causal(128, 128, 4, groups=128)
        self.delta, self.b, self.c = nn.Linear(128, 128), nn.Linear(128, 16), nn.Linear(128, 16)
        self.a, self.d = nn.Parameter(torch.zeros(128, 16)), nn.Parameter(torch.ones(128))
        self.out, self.head = nn.Linear(128, 64), nn.Linear(64, 100)

    def forward(self):
        u, gate = self.start(self.norm(self.x)).chunk(2, 2)
        u = F.silu(self.conv(u.transpose(1, 2)).transpose(1, 2))
        delta = F.softplus(self.delta(u))
        a = torch.exp(delta[..., None] * -self.a.exp())
        h = (delta * u)[..., None] * self.b(u)[:, :, None]
        step = 1
        while step < 128:
            h = torch.cat([h[:, :step], h[:, step:] + a[:, step:] * h[:, :-step]], 1)
            a = torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1)
            step *= 2
        y = (h * self.c(u)[:, :, None]).sum(-1) + self.d * u
        return F.cross_entropy(self.head(self.x + self.out(y * F.silu(gate))).flatten(0, 1), self.labels.flatten())


class GatedDelta(Family):
    """Chunks of 32 steps, as flash-linear-attention computes them."""

    def __init__(self):
        super().__init__()
        self.put("x", 4 * TIMES, 128, 128)
        self.ids("labels", 100, 4 * TIMES, 128)
        self.norm = nn.LayerNorm(128)
        self.q, self.k, self.v, self.out = (nn.Linear(128, 128) for _ in range(4))
        self.gate, self.beta, self.head = nn.Linear(128, 4), nn.Linear(128, 4), nn.Linear(128, 100)

    def forward(self):
        chunk, h = 32, self.norm(self.x)
        parts = lambda x: x.view(4 * TIMES, 4, chunk, 4, -1).permute(1, 0, 3, 2, 4)  # [chunks, batch, heads, chunk, d]
        unit = lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
        q, k, v = unit(parts(self.q(h))), unit(parts(self.k(h))), parts(self.v(h))
        g, beta = parts(F.logsigmoid(self.gate(h))).cumsum(3), parts(self.beta(h).sigmoid())
        decay = (g - g.transpose(3, 4)).tril().exp().tril()
        a = ((beta * k) @ k.mT * decay).tril(-1) + torch.eye(chunk, device=h.device)
        w = torch.linalg.solve_triangular(a, torch.cat([beta * v, beta * g.exp() * k], -1), upper=False, unitriangular=True)
        state, out = 0 * (k[0].mT @ v[0]), []
        for i in range(4):
            u = w[i, ..., :32] - w[i, ..., 32:] @ state
            out.append((q[i] * g[i].exp()) @ state + (q[i] @ k[i].mT * decay[i]) @ u)
            last = g[i, :, :, -1:]
            state = state * last.exp() + (k[i] * (last - g[i]).exp()).mT @ u
        y = torch.stack(out, 1).permute(0, 1, 3, 2, 4).reshape(4 * TIMES, 128, 128)
        return F.cross_entropy(self.head(self.x + self.out(y)).flatten(0, 1), self.labels.flatten())


class Recurrent(Family):
    def __init__(self, kind):
        super().__init__()
        self.ids("tokens", 1000, 32, 16 * TIMES)
        self.ids("labels", 1000, 32, 16 * TIMES)
        self.table, self.body, self.head = nn.Embedding(1000, 128), kind(128, 256), nn.Linear(256, 1000)

    def forward(self):
        return F.cross_entropy(self.head(self.body(self.table(self.tokens))[0]).flatten(0, 1), self.labels.flatten())


class WaveNet(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 4 * TIMES, 1, 1024)
        self.ids("labels", 256, 4 * TIMES, 1024)
        make = lambda i: nn.ModuleList([Causal(32, 64, 2, 1 << i), nn.Conv1d(32, 64, 1), nn.Conv1d(32, 32, 1) if i < 6 else None])
        self.start, self.layers, self.head = nn.Conv1d(1, 32, 1), nn.ModuleList(map(make, range(7))), nn.Conv1d(64, 256, 1)

    def forward(self):
        x, total = self.start(self.x), 0
        for conv, skip, out in self.layers:
            a, b = conv(x).chunk(2, 1)
            h = a.tanh() * b.sigmoid()
            total = total + skip(h)
            if out is not None:
                x = x + out(h)
        return F.cross_entropy(self.head(F.relu(total)), self.labels)


class CTC(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 8 * TIMES, 80, 128)
        self.register_buffer("labels", torch.randint(1, 29, (8 * TIMES, 24)))
        self.convs, self.head = nn.ModuleList(Causal(i, 128, 5) for i in (80, 128, 128)), nn.Linear(128, 29)

    def forward(self):
        x = self.x
        for conv in self.convs:
            x = F.relu(conv(x))
        logs = self.head(x.transpose(1, 2)).transpose(0, 1).log_softmax(2)
        return F.ctc_loss(logs, self.labels, torch.full((8 * TIMES,), 128), torch.full((8 * TIMES,), 24))


def mlp(act, *sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [act()] * (i > 0) + [nn.Linear(a, b)]
    return nn.Sequential(*layers)


class Recommender(Family):
    def __init__(self):
        super().__init__()
        self.put("dense", 512 * TIMES, 13)
        self.put("click", 512 * TIMES, 1)
        self.ids("rows", 20000, 8, 512 * TIMES)
        self.bottom, self.top = mlp(nn.ReLU, 13, 128, 32), mlp(nn.ReLU, 32 + 81, 128, 64, 1)
        self.tables = nn.ModuleList(nn.Embedding(20000, 32) for _ in range(8))

    def forward(self):
        first = self.bottom(self.dense)
        x = torch.stack([first] + [table(rows) for table, rows in zip(self.tables, self.rows)], 1)
        y = self.top(torch.cat([first, torch.bmm(x, x.mT).flatten(1)], 1))
        return F.binary_cross_entropy_with_logits(y, self.click.sigmoid())


class Messages(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 5000 * TIMES, 32)
        self.ids("source", 5000 * TIMES, 50000 * TIMES)
        self.ids("target", 5000 * TIMES, 50000 * TIMES)
        self.ids("labels", 10, 5000 * TIMES)
        self.rounds = nn.ModuleList(nn.ModuleList(nn.Linear(32, 32) for _ in range(3)) for _ in range(2))
        self.head = nn.Linear(32, 10)

    def forward(self):
        x = self.x
        for source, target, update in self.rounds:
            sent = F.relu(source(x)[self.source] + target(x)[self.target])
            x = x + F.relu(update(torch.zeros_like(x).index_add(0, self.target, sent.to(x.dtype))))
        return F.cross_entropy(self.head(x), self.labels)


class VAE(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 128 * TIMES, 784)
        self.put("noise", 128 * TIMES, 20)
        self.encode, self.mean, self.spread, self.decode = nn.Linear(784, 400), nn.Linear(400, 20), nn.Linear(400, 20), mlp(nn.ReLU, 20, 400, 784)

    def forward(self):
        h = F.relu(self.encode(self.x))
        mean, spread = self.mean(h), self.spread(h)
        y = self.decode(mean + self.noise * (0.5 * spread).exp())
        fit = F.binary_cross_entropy_with_logits(y, self.x.sigmoid())
        return fit + 0.5 * (mean.square() + spread.exp() - spread - 1).mean()


class GAN(Family):
    def __init__(self):
        super().__init__()
        leaky = lambda: nn.LeakyReLU(0.2)
        self.put("noise", 64 * TIMES, 64)
        self.put("x", 64 * TIMES, 784)
        self.make, self.judge = mlp(leaky, 64, 256, 512, 784), mlp(leaky, 784, 512, 256, 1)

    def forward(self):
        fake = self.make(self.noise).tanh()
        loss = F.softplus(-self.judge(self.x)).mean() + F.softplus(self.judge(fake.detach())).mean()
        fixed = {name: p.detach() for name, p in self.judge.named_parameters()}
        return loss + F.softplus(-torch.func.functional_call(self.judge, fixed, (fake,))).mean()


class PINN(Family):
    def __init__(self):
        super().__init__()
        for name in ("x", "t", "u"):
            self.put(name, 512 * TIMES, 1)
        self.net = mlp(nn.Tanh, 2, 64, 64, 64, 1)

    def forward(self):
        x, t = self.x.detach().requires_grad_(), self.t.detach().requires_grad_()
        u = self.net(torch.cat([x, t], 1))
        along = lambda y, x: torch.autograd.grad(y.sum(), x, create_graph=True)[0]
        u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
        rest = u_t + 6 * u * u_x + along(along(u_x, x), x)
        return rest.square().mean() + (u - self.u).square().mean()


class NeRF(Family):
    def __init__(self):
        super().__init__()
        self.put("points", 256 * TIMES, 32, 3)
        self.put("pixels", 256 * TIMES, 3)
        self.first, self.second = mlp(nn.ReLU, 63, 128, 128), mlp(nn.ReLU, 191, 128, 128)
        self.density, self.colour = nn.Linear(128, 1), nn.Linear(128, 3)

    def forward(self):
        points = self.points.view(-1, 3)
        parts = [points]
        for k in range(10):
            angle = points * (torch.pi * 2**k)
            parts += [angle.sin(), angle.cos()]
        coded = torch.cat(parts, 1)
        h = F.relu(self.second(torch.cat([F.relu(self.first(coded)), coded], 1)))
        density, colour = F.softplus(self.density(h).view(-1, 32)), self.colour(h).view(-1, 32, 3).sigmoid()
        weight = torch.exp(density - density.cumsum(1)) * (1 - torch.exp(-density))
        return F.mse_loss((weight[..., None] * colour).sum(1), self.pixels)


class Process(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 512 * TIMES, 8)
        self.put("y", 512 * TIMES, 1)
        self.length, self.noise = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(1))

    def forward(self):
        z = self.x / self.length.exp()
        square = z.square().sum(1, keepdim=True)
        apart = (square + square.T - 2 * z @ z.T).clamp(min=0)
        l = torch.linalg.cholesky(torch.exp(-0.5 * apart) + torch.eye(len(z), device=z.device) * (self.noise.exp() + 1e-3))
        half = torch.linalg.solve_triangular(l, self.y, upper=False)
        return 0.5 * half.square().sum() + l.diagonal().log().sum()


class Splats(Family):
    def __init__(self):
        super().__init__()
        self.put("depth", 128 * TIMES)
        self.put("image", 4096, 3)
        self.at, self.colour = (nn.Parameter(torch.rand(128 * TIMES, n)) for n in (2, 3))
        self.size, self.opacity = (nn.Parameter(torch.zeros(128 * TIMES)) for _ in range(2))

    def forward(self):
        order = self.depth.argsort()
        at, size, colour, opacity = self.at[order], self.size[order], self.colour[order], self.opacity[order]
        axis = torch.arange(64, device=at.device) / 64
        far = (axis[:, None, None] - at[:, 0]) ** 2 + (axis[None, :, None] - at[:, 1]) ** 2
        alpha = opacity.sigmoid() * torch.exp(-far * size.exp())
        logs = torch.log(1.001 - alpha)
        passed = torch.exp(logs.cumsum(2) - logs)
        return F.mse_loss((alpha * passed).view(4096, -1) @ colour, self.image)


class QLearning(Family):
    def __init__(self):
        super().__init__()
        self.put("before", 256 * TIMES, 8)
        self.put("after", 256 * TIMES, 8)
        self.put("reward", 256 * TIMES, 1)
        self.ids("action", 4, 256 * TIMES, 1)
        self.q, self.target = mlp(nn.ReLU, 8, 64, 64, 4), mlp(nn.ReLU, 8, 64, 64, 4).requires_grad_(False)

    def forward(self):
        best = self.reward + 0.99 * self.target(self.after).amax(1, keepdim=True)
        return F.huber_loss(self.q(self.before).gather(1, self.action), best)


class Tiny(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 16 * TIMES, 32)
        self.scales, self.shifts = (nn.ParameterList(torch.full((32,), v) for _ in range(500)) for v in (1.0, 0.0))

    def forward(self):
        x = self.x
        for i, (scale, shift) in enumerate(zip(self.scales, self.shifts)):
            x = x * scale + shift
            if i % 10 == 9:
                x = x.tanh()
        return x.square().mean()


class Chain(Family):
    def __init__(self):
        super().__init__()
        self.put("x", TIMES << 20)
        self.w = nn.Parameter(torch.rand(TIMES << 20))

    def forward(self):
        y = x = self.x * self.w
        for i in range(10):
            y = y.tanh() * 0.9 + x
            y = y * (y - 0.1 * i).sigmoid()
        return y.mean()


class Sorted(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 32 * TIMES, 4096)
        self.w = nn.Parameter(torch.rand(4096))

    def forward(self):
        x = self.x * self.w
        return x.sort(1)[0].diff(dim=1).square().mean() + x.topk(32)[0].square().mean()


FAMILIES = {
    "residual": Residual, "depthwise": Depthwise, "convnext": ConvNeXt, "unet": UNet, "vit": ViT, "bert": Bert, "llama": Llama,
    "moe": Mixture, "mamba": Mamba, "gated delta": GatedDelta, "lstm": lambda: Recurrent(nn.LSTM), "gru": lambda: Recurrent(nn.GRU),
    "wavenet": WaveNet, "ctc": CTC, "recommender": Recommender, "messages": Messages, "vae": VAE, "gan": GAN, "pinn": PINN,
    "nerf": NeRF, "gp": Process, "splats": Splats, "q learning": QLearning, "tiny parameters": Tiny, "chain": Chain, "sort": Sorted,
}


def built(name, compiled, device="cpu"):
    """A model, one of models.py, further.py or unusual.py too, and the function of its loss."""
    from further import FURTHER
    from models import MODELS, MODELS_OF_CPU
    from unusual import UNUSUAL

    torch.manual_seed(0)
    model = (FAMILIES | MODELS | MODELS_OF_CPU | FURTHER | UNUSUAL)[name]().to(device)
    return model, torch.compile(model) if compiled else model


@functools.cache
def step(name, compiled, forward):
    """One step of AdamW, or the loss alone. Calls after the first return the same function."""
    model, loss = built(name, compiled)
    if forward:
        return torch.no_grad()(loss)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, foreach=True)
    def run():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run


def refused(*job):
    """Whether a step fails, as some of compiled ones do."""
    try:
        step(*job)()
        return False
    except Exception as failure:
        print(f"{job[0]}: {str(failure)[:300]}", file=sys.stderr)
        return True


def job(name, compiled, forward=False):
    return None if refused(name, compiled, forward) else step(name, compiled, forward)


if __name__ == "__main__":
    serve({
        f"{how} {name}": functools.partial(job, name, how == "compile") for name in FAMILIES for how in ("eager", "compile")
    })
