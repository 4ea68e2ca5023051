"""The models of BenchmarkModels of package native/cpu in PyTorch, with the same shapes. Reads "eager infer NAME",
"compile train NAME" and so on a line and writes the least time of its runs in ms, 0 for a model that it does not have.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Models -timeout=2h ./native/cpu
"""
import functools
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

from torch import nn


class Model(nn.Module):
    """A model of a batch. Inputs are buffers."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch
        self.make(batch)

    def put(self, name, *dims):
        self.register_buffer(name, torch.rand(*dims) - 0.5)

    def ids(self, name, below, *dims):
        self.register_buffer(name, torch.randint(below, dims))

    def last(self):
        """Channels last for weights and inputs."""
        self.to(memory_format=torch.channels_last)
        self.x = self.x.to(memory_format=torch.channels_last)


def seq(*layers):
    return nn.Sequential(*layers)


def conv_norm(i, o, window, stride=1, groups=1, act=None):
    return seq(nn.Conv2d(i, o, window, stride, window // 2, groups=groups, bias=False), nn.BatchNorm2d(o), *([act()] if act else []))


def mlp(i, act, *sizes):
    layers = []
    for k, o in enumerate(sizes):
        layers += ([act()] if k else []) + [nn.Linear(i, o)]
        i = o
    return seq(*layers)


class Squeeze(nn.Module):
    def __init__(self, i, width, act, gate):
        super().__init__()
        self.body = seq(nn.Conv2d(i, width, 1), act(), nn.Conv2d(width, i, 1), gate())

    def forward(self, x):
        return x * self.body(x.mean((2, 3), keepdim=True))


class Inverted(nn.Module):
    def __init__(self, i, window, wide, o, stride, squeeze, act, squeezed, gate):
        super().__init__()
        layers = [conv_norm(i, wide, 1, act=act)] if wide != i else []
        layers += [conv_norm(wide, wide, window, stride, wide, act)]
        layers += [Squeeze(wide, squeeze, squeezed, gate)] if squeeze else []
        self.body, self.skip = seq(*layers, conv_norm(wide, o, 1)), stride == 1 and i == o

    def forward(self, x):
        return x + self.body(x) if self.skip else self.body(x)


class MobileNetV3(Model):
    def make(self, batch):
        self.put("x", batch, 3, 128, 128)
        r, h = nn.ReLU, nn.Hardswish
        i, layers = 16, [conv_norm(3, 16, 3, 2, act=h)]
        for window, wide, o, s, stride, act in (
            (3, 16, 16, 8, 2, r), (3, 72, 24, 0, 2, r), (3, 88, 24, 0, 1, r), (5, 96, 40, 24, 2, h), (5, 240, 40, 64, 1, h), (5, 240, 40, 64, 1, h),
            (5, 120, 48, 32, 1, h), (5, 144, 48, 40, 1, h), (5, 288, 96, 72, 2, h), (5, 576, 96, 144, 1, h), (5, 576, 96, 144, 1, h),
        ):
            layers.append(Inverted(i, window, wide, o, stride, s, act, r, nn.Hardsigmoid))
            i = o
        self.body, self.head = seq(*layers, conv_norm(96, 576, 1, act=h)), mlp(576, h, 1024, 100)
        self.last()

    def forward(self):
        return self.head(self.body(self.x).mean((2, 3)))


class EfficientNet(Model):
    def make(self, batch):
        self.put("x", batch, 3, 96, 96)
        i, layers = 32, [conv_norm(3, 32, 3, 2, act=nn.SiLU)]
        for window, times, o, blocks, stride in ((3, 1, 16, 1, 1), (3, 6, 24, 2, 2), (5, 6, 40, 2, 2), (3, 6, 80, 2, 2), (5, 6, 112, 2, 1), (5, 6, 192, 2, 2), (3, 6, 320, 1, 1)):
            for k in range(blocks):
                layers.append(Inverted(i, window, times * i, o, 1 if k else stride, i // 4, nn.SiLU, nn.SiLU, nn.Sigmoid))
                i = o
        self.body, self.head = seq(*layers, conv_norm(320, 1280, 1, act=nn.SiLU)), nn.Linear(1280, 100)
        self.last()

    def forward(self):
        return self.head(self.body(self.x).mean((2, 3)))


class DenseNet(Model):
    def make(self, batch):
        self.put("x", batch, 3, 32, 32)
        g, c = 16, 32
        normed = lambda c: seq(nn.BatchNorm2d(c), nn.ReLU())
        self.stem, self.stages = nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.ModuleList()
        for stage in range(3):
            down = nn.Identity()
            if stage:
                down = seq(normed(c), nn.Conv2d(c, c // 2, 1, bias=False), nn.AvgPool2d(2))
                c //= 2
            layers = []
            for _ in range(6):
                layers.append(seq(normed(c), nn.Conv2d(c, 4 * g, 1, bias=False), normed(4 * g), nn.Conv2d(4 * g, g, 3, padding=1, bias=False)))
                c += g
            self.stages.append(nn.ModuleList([down, *layers]))
        self.norm, self.head = normed(c), nn.Linear(c, 100)
        self.last()

    def forward(self):
        x = self.stem(self.x)
        for down, *layers in self.stages:
            x = down(x)
            for layer in layers:
                x = torch.cat([x, layer(x)], 1)
        return self.head(self.norm(x).mean((2, 3)))


class ShuffleNet(Model):
    def make(self, batch):
        self.put("x", batch, 3, 96, 96)
        r, c = nn.ReLU, 24
        self.stem, self.left, self.right = conv_norm(3, 24, 3, 2, act=r), nn.ModuleList(), nn.ModuleList()
        for o in (48, 96, 192):
            for i in range(3):
                self.left.append(nn.Identity() if i else seq(conv_norm(c, c, 3, 2, c), conv_norm(c, o // 2, 1, act=r)))
                k = o // 2 if i else c
                self.right.append(seq(conv_norm(k, o // 2, 1, act=r), conv_norm(o // 2, o // 2, 3, 1 if i else 2, o // 2), conv_norm(o // 2, o // 2, 1, act=r)))
            c = o
        self.tail, self.head = conv_norm(c, 512, 1, act=r), nn.Linear(512, 100)
        self.last()

    def forward(self):
        x = F.max_pool2d(self.stem(self.x), 3, 2, 1)
        for i, (left, right) in enumerate(zip(self.left, self.right)):
            a, c = x.chunk(2, 1) if i % 3 else (x, x)
            x = torch.cat([left(a), right(c)], 1)
            n, k, h, w = x.shape
            x = x.view(n, 2, k // 2, h, w).transpose(1, 2).reshape(n, k, h, w)
        return self.head(self.tail(x).mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.body = seq(conv_norm(i, o // 2, 1, act=nn.ReLU), conv_norm(o // 2, o // 2, 3, stride, 16, nn.ReLU), conv_norm(o // 2, o, 1))
        self.skip = conv_norm(i, o, 1, stride) if stride > 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNeXt(Model):
    def make(self, batch):
        self.put("x", batch, 3, 64, 64)
        self.body = seq(conv_norm(3, 32, 3, 2, act=nn.ReLU), Bottleneck(32, 128, 1), Bottleneck(128, 128, 2), Bottleneck(128, 256, 1), Bottleneck(256, 256, 2))
        self.head = nn.Linear(256, 100)
        self.last()

    def forward(self):
        return self.head(self.body(self.x).mean((2, 3)))


class Segmentation(Model):
    def make(self, batch):
        self.put("x", batch, 3, 64, 64)
        double = lambda i, o: seq(conv_norm(i, o, 3, act=nn.ReLU), conv_norm(o, o, 3, act=nn.ReLU))
        self.down = nn.ModuleList([double(3, 16), double(16, 32), double(32, 64)])
        self.turn = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
        self.up, self.out = nn.ModuleList([double(64, 32), double(32, 16)]), nn.Conv2d(16, 5, 1)
        self.last()

    def forward(self):
        one = self.down[0](self.x)
        two = self.down[1](F.max_pool2d(one, 2))
        x = self.down[2](F.max_pool2d(two, 2))
        x = self.up[0](torch.cat([two, self.turn[0](x)], 1))
        return self.out(self.up[1](torch.cat([one, self.turn[1](x)], 1)))


class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, bias=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2))


class DiffusionBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
        self.time, self.norm2, self.conv2 = nn.Linear(64, o), nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class Diffusion(Model):
    def make(self, batch):
        self.put("x", batch, 3, 32, 32)
        self.put("t", batch, 32)
        self.time, self.first, self.smaller = nn.Linear(32, 64), nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 64, 3, 2, 1)
        self.one, self.two, self.norm, self.attend = DiffusionBlock(32, 32), DiffusionBlock(64, 64), nn.GroupNorm(8, 64), Attend(64, 4)
        self.three, self.back, self.four = DiffusionBlock(128, 64), nn.Conv2d(64, 32, 3, padding=1), DiffusionBlock(64, 32)
        self.out = seq(nn.GroupNorm(8, 32), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1))

    def forward(self):
        t = F.silu(self.time(self.t))
        one = self.one(self.first(self.x), t)
        two = self.two(self.smaller(one), t)
        h = two + self.attend(self.norm(two).flatten(2).transpose(1, 2)).transpose(1, 2).reshape(two.shape)
        h = self.three(torch.cat([h, two], 1), t)
        h = self.back(F.interpolate(h, scale_factor=2))
        return self.out(self.four(torch.cat([h, one], 1), t))


class SwinBlock(nn.Module):
    def __init__(self, c, shift):
        super().__init__()
        self.shift, self.norm1, self.norm2 = shift, nn.LayerNorm(c), nn.LayerNorm(c)
        self.attend, self.mlp = Attend(c, c // 32), mlp(c, nn.GELU, 4 * c, c)
        self.bias = nn.Parameter(torch.rand(c // 32, 49, 49))

    def forward(self, x):
        n, h, _, c = x.shape
        k, y = h // 7, self.norm1(x)
        if self.shift:
            y = y.roll((-3, -3), (1, 2))
        y = y.view(n, k, 7, k, 7, c).transpose(2, 3).reshape(-1, 49, c)
        y = self.attend(y, self.bias).view(n, k, k, 7, 7, c).transpose(2, 3).reshape(n, h, h, c)
        if self.shift:
            y = y.roll((3, 3), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Swin(Model):
    def make(self, batch):
        self.put("x", batch, 3, 112, 112)
        self.patches, self.norm = nn.Conv2d(3, 64, 4, 4), nn.LayerNorm(64)
        self.first, self.second = seq(SwinBlock(64, 0), SwinBlock(64, 3)), seq(SwinBlock(128, 0), SwinBlock(128, 3))
        self.merge, self.head = seq(nn.LayerNorm(256), nn.Linear(256, 128, bias=False)), seq(nn.LayerNorm(128))
        self.out = nn.Linear(128, 100)
        self.last()

    def forward(self):
        x = self.first(self.norm(self.patches(self.x).permute(0, 2, 3, 1)))
        n, h, _, c = x.shape
        x = self.merge(x.view(n, h // 2, 2, h // 2, 2, c).permute(0, 1, 3, 4, 2, 5).reshape(n, h // 2, h // 2, 4 * c))
        return self.out(self.head(self.second(x)).mean((1, 2)))


class Mixer(Model):
    def make(self, batch):
        self.put("x", batch, 3, 64, 64)
        self.patches = nn.Conv2d(3, 128, 8, 8)
        self.layers = nn.ModuleList(nn.ModuleList([nn.LayerNorm(128), mlp(64, nn.GELU, 64, 64), nn.LayerNorm(128), mlp(128, nn.GELU, 512, 128)]) for _ in range(4))
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 100)
        self.last()

    def forward(self):
        x = self.patches(self.x).flatten(2).transpose(1, 2)
        for norm1, tokens, norm2, channels in self.layers:
            x = x + tokens(norm1(x).transpose(1, 2)).transpose(1, 2)
            x = x + channels(norm2(x))
        return self.head(self.norm(x).mean(1))


class ConvVAE(Model):
    def make(self, batch):
        self.put("x", batch, 3, 64, 64)
        self.put("noise", batch, 64)
        act = lambda: nn.LeakyReLU(0.01)
        down = lambda i, o: seq(nn.Conv2d(i, o, 3, 2, 1), nn.BatchNorm2d(o), act())
        up = lambda i, o: seq(nn.ConvTranspose2d(i, o, 3, 2, 1, 1), nn.BatchNorm2d(o), act())
        self.code, self.mean, self.spread = seq(down(3, 32), down(32, 64), down(64, 128)), nn.Linear(8192, 64), nn.Linear(8192, 64)
        self.wide, self.out = nn.Linear(64, 8192), seq(up(128, 64), up(64, 32), up(32, 16), nn.Conv2d(16, 3, 3, padding=1))
        self.last()

    def forward(self):
        x = self.code(self.x).permute(0, 2, 3, 1).flatten(1)
        z = self.mean(x) + self.noise * (self.spread(x) * 0.5).exp()
        return self.out(self.wide(z).view(-1, 8, 8, 128).permute(0, 3, 1, 2)).sigmoid()


class Keywords(Model):
    def make(self, batch):
        self.put("x", batch, 1, 8000)
        layers, i = [], 1
        for o in (32, 32, 64, 64):
            layers += [nn.Conv1d(i, o, 3, 1) if i > 1 else nn.Conv1d(1, o, 80, 8), nn.BatchNorm1d(o), nn.ReLU(), nn.MaxPool1d(4)]
            i = o
        self.body, self.head = seq(*layers), nn.Linear(64, 35)

    def forward(self):
        return self.head(self.body(self.x).mean(2))


class PointNet(Model):
    def make(self, batch):
        self.put("x", batch, 3, 1024)
        layers, i = [], 3
        for o in (64, 64, 128, 512):
            layers += [nn.Conv1d(i, o, 1), nn.BatchNorm1d(o), nn.ReLU()]
            i = o
        self.body, self.head = seq(*layers), mlp(512, nn.ReLU, 256, 40)

    def forward(self):
        return self.head(self.body(self.x).amax(2))


class GraphAttention(Model):
    def make(self, batch):
        self.nodes, self.heads = 2000, 4
        self.ids("source", 2000, 16000)
        self.ids("to", 2000, 16000)
        self.put("x", 2000, 64)
        self.layers = nn.ModuleList([nn.Linear(64, 64, bias=False), nn.Linear(64, 32, bias=False)])
        self.scores = nn.ParameterList([torch.rand(4, w) for w in (16, 16, 8, 8)])
        self.head = nn.Linear(32, 7)

    def gather(self, x):
        return torch.zeros(self.nodes, *x.shape[1:]).index_add(0, self.to_, x)

    def forward(self):
        x, self.to_ = self.x, self.to_ids
        for i, layer in enumerate(self.layers):
            h = layer(x).view(self.nodes, self.heads, -1)
            source, target = ((h * self.scores[2 * i + k]).sum(2) for k in (0, 1))
            s = F.leaky_relu(source[self.source] + target[self.to_], 0.2)
            at = self.to_[:, None].expand(-1, self.heads)
            most = torch.full((self.nodes, self.heads), -1e30).scatter_reduce(0, at, s.detach(), "amax")
            s = (s - most[self.to_]).exp()
            s = s / (self.gather(s) + 1e-16)[self.to_]
            x = F.elu(self.gather(h[self.source] * s[:, :, None]).flatten(1))
        return self.head(x)

    def ids(self, name, below, *dims):
        super().ids("to_ids" if name == "to" else name, below, *dims)


class Gated(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.one, self.two = (seq(nn.Linear(k, 128), nn.BatchNorm1d(128), nn.GLU(1)) for k in (i, 64))

    def forward(self, x):
        y = self.one(x)
        return (y + self.two(y)) * 0.7071


class TabNet(Model):
    def make(self, batch):
        self.put("x", batch, 20)
        for i in range(8):
            self.ids(f"column{i}", 100, batch)
        self.tables, self.norm = nn.ModuleList(nn.Embedding(100, 8) for _ in range(8)), nn.BatchNorm1d(84)
        self.first, self.units = Gated(84), nn.ModuleList(Gated(84) for _ in range(3))
        self.masks, self.head = nn.ModuleList(seq(nn.Linear(64, 84), nn.BatchNorm1d(84)) for _ in range(3)), nn.Linear(64, 2)

    def forward(self):
        x = self.norm(torch.cat([self.x] + [t(getattr(self, f"column{i}")) for i, t in enumerate(self.tables)], 1))
        h, prior, y = self.first(x), 1, 0
        for mask, unit in zip(self.masks, self.units):
            m = (prior * mask(h)).softmax(1)
            prior = prior * (1.3 - m)
            h = unit(m * x)
            y = y + F.relu(h)
        return self.head(y)


class Tagger(Model):
    def make(self, batch):
        self.ids("words", 5000, batch, 40)
        self.table, self.lstm, self.head = nn.Embedding(5000, 64), nn.LSTM(64, 96, batch_first=True, bidirectional=True), nn.Linear(192, 20)

    def forward(self):
        return self.head(self.lstm(self.table(self.words))[0])


class Seq2Seq(Model):
    def make(self, batch):
        self.ids("source", 2000, batch, 30)
        self.ids("target", 2000, batch, 25)
        self.tables = nn.ModuleList([nn.Embedding(2000, 64), nn.Embedding(2000, 64)])
        self.encoder, self.decoder = nn.GRU(64, 128, batch_first=True), nn.GRU(64, 128, batch_first=True)
        self.join, self.head = nn.Linear(256, 128), nn.Linear(128, 2000)

    def forward(self):
        encoded, h = self.encoder(self.tables[0](self.source))
        y, _ = self.decoder(self.tables[1](self.target), h)
        w = (y @ encoded.transpose(1, 2)).softmax(2)
        return self.head(self.join(torch.cat([y, w @ encoded], 2)).tanh())


class DLRM(Model):
    def make(self, batch):
        self.put("x", batch, 13)
        for i in range(8):
            self.ids(f"feature{i}", 10_000, batch)
        self.tables = nn.ModuleList(nn.Embedding(10_000, 32) for _ in range(8))
        self.dense, self.top = mlp(13, nn.ReLU, 128, 64, 32), mlp(113, nn.ReLU, 256, 128, 1)

    def forward(self):
        d = F.relu(self.dense(self.x))
        a = torch.stack([d] + [t(getattr(self, f"feature{i}")) for i, t in enumerate(self.tables)], 1)
        return self.top(torch.cat([d, (a @ a.transpose(1, 2)).flatten(1)], 1))


class NeuMF(Model):
    def make(self, batch):
        self.ids("user", 6000, batch)
        self.ids("item", 4000, batch)
        self.tables = nn.ModuleList(nn.Embedding(n, w) for n, w in ((6000, 16), (4000, 16), (6000, 32), (4000, 32)))
        self.net, self.head = mlp(64, nn.ReLU, 64, 32, 16), nn.Linear(32, 1)

    def forward(self):
        a, b, c, d = self.tables
        h = F.relu(self.net(torch.cat([c(self.user), d(self.item)], 1)))
        return self.head(torch.cat([a(self.user) * b(self.item), h], 1))


class LinearBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
        self.q, self.k, self.v, self.out = (nn.Linear(128, 128) for _ in range(4))
        self.mlp = mlp(128, nn.GELU, 512, 128)

    def forward(self, x, lower):
        n, y = x.shape[0], self.norm1(x)
        split = lambda f: f(y).view(n, 4, 64, 4, 32).permute(0, 3, 1, 2, 4)
        q, k, v = F.elu(split(self.q)) + 1, F.elu(split(self.k)) + 1, split(self.v)
        turned = k.transpose(3, 4)
        before = lambda x: x.cumsum(2) - x
        state, sums = before(turned @ v), before(k.sum(3))
        scores = (q @ turned) * lower
        over = scores.sum(4) + (q * sums[:, :, :, None]).sum(4)
        y = ((scores @ v + q @ state) / over[..., None]).permute(0, 2, 3, 1, 4).reshape(n, 256, 128)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x))


class LinearAttention(Model):
    def make(self, batch):
        self.ids("tokens", 1000, batch, 256)
        self.table, self.blocks = nn.Embedding(1000, 128), nn.ModuleList([LinearBlock(), LinearBlock()])
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 1000)
        self.register_buffer("lower", torch.ones(64, 64).tril())

    def forward(self):
        x = self.table(self.tokens)
        for block in self.blocks:
            x = block(x, self.lower)
        return self.head(self.norm(x))


class ConformerBlock(nn.Module):
    def __init__(self, w=96):
        super().__init__()
        feed = lambda: seq(nn.LayerNorm(w), mlp(w, nn.SiLU, 4 * w, w))
        self.feed1, self.feed2, self.norm, self.attend = feed(), feed(), nn.LayerNorm(w), Attend(w, 4)
        self.glu, self.deep = seq(nn.LayerNorm(w), nn.Linear(w, 2 * w), nn.GLU()), seq(nn.Conv1d(w, w, 31, padding=15, groups=w), nn.BatchNorm1d(w), nn.SiLU())
        self.point, self.last = nn.Linear(w, w), nn.LayerNorm(w)

    def forward(self, x):
        x = x + self.feed1(x) * 0.5
        x = x + self.attend(self.norm(x))
        x = x + self.point(self.deep(self.glu(x).transpose(1, 2)).transpose(1, 2))
        return self.last(x + self.feed2(x) * 0.5)


class Conformer(Model):
    def make(self, batch):
        self.put("x", batch, 150, 80)
        self.body = seq(nn.Linear(80, 96), ConformerBlock(), ConformerBlock(), nn.Linear(96, 100))

    def forward(self):
        return self.body(self.x)


class ActorCritic(Model):
    def make(self, batch):
        self.put("x", batch, 24)
        self.put("reward", batch, 1)
        self.ids("action", 4, batch, 1)
        self.policy, self.value = mlp(24, nn.Tanh, 64, 64, 4), mlp(24, nn.Tanh, 64, 64, 1)

    def forward(self):
        chosen, gain = self.policy(self.x).log_softmax(1).gather(1, self.action), self.reward - self.value(self.x)
        return torch.cat([chosen * gain.detach(), gain], 1)


class Kalman(Model):
    def make(self, batch):
        self.put("seen", 50, batch, 2, 1)
        self.move, self.see = nn.Parameter(torch.rand(4, 4) * 0.5), nn.Parameter(torch.rand(2, 4))
        self.register_buffer("n", torch.eye(4))
        self.register_buffer("m", torch.eye(2))

    def forward(self):
        x, p, ys = torch.zeros(self.batch, 4, 1), self.n.expand(self.batch, 4, 4), []
        for seen in self.seen:
            x = self.move @ x
            p = self.move @ p @ self.move.T + self.n
            gain = torch.linalg.solve(self.see @ p @ self.see.T + self.m, self.see @ p).transpose(1, 2)
            x = x + gain @ (seen - self.see @ x)
            p = (self.n - gain @ self.see) @ p
            ys.append(x)
        return torch.stack(ys)


MODELS = {
    "mobilenet v3": (16, MobileNetV3), "efficientnet": (16, EfficientNet), "densenet": (16, DenseNet), "shufflenet": (16, ShuffleNet),
    "resnext": (16, ResNeXt), "unet transposed": (4, Segmentation), "diffusion planes": (4, Diffusion), "swin": (8, Swin),
    "mixer": (8, Mixer), "conv vae": (16, ConvVAE), "keywords": (16, Keywords), "pointnet": (8, PointNet),
    "graph attention": (1, GraphAttention), "tabnet": (256, TabNet), "tagger": (16, Tagger), "seq2seq": (16, Seq2Seq),
    "dlrm": (256, DLRM), "neumf": (1024, NeuMF), "linear attention": (4, LinearAttention), "conformer": (4, Conformer),
    "actor critic": (8, ActorCritic), "kalman": (16, Kalman),
}


@functools.cache
def step(name, train, compiled):
    torch.manual_seed(0)
    batch, kind = MODELS[name]
    model = kind(batch if train else 1)
    f = torch.compile(model) if compiled else model
    if not train:
        model.eval()

        def infer():
            with torch.inference_mode():
                f()

        return infer
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)

    def run():
        optimizer.zero_grad()
        f().square().mean().backward()
        optimizer.step()

    return run


def job(name, train, compiled):
    try:
        run = step(name, train, compiled)
        run()
        return run
    except Exception as failure:
        print(f"{name}: {str(failure)[:300]}", file=sys.stderr)
        return None


if __name__ == "__main__":
    serve({
        f"{how} {kind} {name}": functools.partial(job, name, kind == "train", how == "compile")
        for name in MODELS for kind in ("infer", "train") for how in ("eager", "compile")
    })
