"""The models of package ir/irtest/families at the sizes of their papers (Models) in PyTorch, as families.py.

Run as a program, it times those of ModelsOfCPU: "eager step NAME", "eager forward NAME" and so on with compile.

    PYTHON=python3 go test -run='^$' -bench=PaperModels -timeout=2h ./native/cpu
"""
import functools

import torch
import torch.nn.functional as F
from torch import nn

from families import Attend, ChannelNorm, ConvNeXtBlock, Family, TIMES, job
from serve import serve


def norm_act(i, o, window, stride=1, groups=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, window, stride, window // 2, groups=groups), nn.BatchNorm2d(o), act())


class Images(Family):
    """A network of images, 224 × 224, in channels last, with a head of 1,000 classes."""

    def __init__(self, batch, body, width, pool=True):
        super().__init__()
        self.put_images("x", batch, 3, 224, 224)
        self.ids("labels", 1000, batch)
        self.body, self.head, self.pool = body, nn.Linear(width, 1000), pool
        self.to(memory_format=torch.channels_last)

    def forward(self):
        y = self.body(self.x)
        return F.cross_entropy(self.head(y.mean((2, 3)) if self.pool else y), self.labels)


def vgg16(batch):
    layers, i = [], 3
    for count, o in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            layers.append(norm_act(i, o, 3))
            i = o
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(25088, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU()]
    return Images(batch, nn.Sequential(*layers), 4096, pool=False)


def act_norm(i):
    return nn.Sequential(nn.BatchNorm2d(i), nn.ReLU())


class Dense(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.body = nn.Sequential(act_norm(i), nn.Conv2d(i, 128, 1), act_norm(128), nn.Conv2d(128, 32, 3, padding=1))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def dense_net(batch):
    layers, i = [norm_act(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for stage, count in enumerate((6, 12, 24, 16)):
        if stage:
            layers += [act_norm(i), nn.Conv2d(i, i // 2, 1), nn.AvgPool2d(2)]
            i //= 2
        for _ in range(count):
            layers.append(Dense(i))
            i += 32
    return Images(batch, nn.Sequential(*layers, act_norm(i)), i)


class MBConv(nn.Module):
    def __init__(self, i, o, expand, window, stride):
        super().__init__()
        wide = i * expand
        self.up = norm_act(i, wide, 1, act=nn.SiLU) if expand > 1 else nn.Identity()
        self.deep, self.skip = norm_act(wide, wide, window, stride, wide, nn.SiLU), stride == 1 and i == o
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, i // 4, 1), nn.SiLU(), nn.Conv2d(i // 4, wide, 1), nn.Sigmoid())
        self.down = nn.Sequential(nn.Conv2d(wide, o, 1), nn.BatchNorm2d(o))

    def forward(self, x):
        y = self.deep(self.up(x))
        y = self.down(y * self.gate(y))
        return x + y if self.skip else y


def efficient_net(batch):
    layers, i = [norm_act(3, 32, 3, 2, act=nn.SiLU)], 32
    for expand, o, count, stride, window in (
        (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
    ):
        for n in range(count):
            layers.append(MBConv(i, o, expand, window, stride if n == 0 else 1))
            i = o
    return Images(batch, nn.Sequential(*layers, norm_act(320, 1280, 1, act=nn.SiLU)), 1280)


def convnext(batch):
    layers = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    for stage, count in enumerate((3, 3, 9, 3)):
        width = 96 << stage
        if stage:
            layers += [ChannelNorm(width // 2), nn.Conv2d(width // 2, width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(count)]
    return Images(batch, nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), ChannelNorm(768), nn.Flatten()), 768, pool=False)


class AttendTo(nn.Module):
    def __init__(self, width, heads, other=None, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k, self.v = nn.Linear(other or width, width), nn.Linear(other or width, width)

    def forward(self, x, y, mask=None):
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in (self.q(x), self.k(y), self.v(y)))
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(z.transpose(1, 2).reshape(x.shape))


def mlp(width):
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class PreNorm(nn.Module):
    def __init__(self, width, heads, causal=False, other=None):
        super().__init__()
        self.norm1, self.attend = nn.LayerNorm(width), AttendTo(width, heads, causal=causal)
        self.norm2, self.mlp = nn.LayerNorm(width), mlp(width)
        self.cross = AttendTo(width, heads) if other else None
        self.norm3 = nn.LayerNorm(width) if other else None

    def forward(self, x, sound=None):
        h = self.norm1(x)
        x = x + self.attend(h, h)
        if self.cross is not None:
            x = x + self.cross(self.norm3(x), sound)
        return x + self.mlp(self.norm2(x))


class ViTBody(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.patches, self.first, self.positions = nn.Conv2d(3, 768, 16, 16), nn.Parameter(torch.zeros(1, 1, 768)), nn.Parameter(torch.zeros(197, 768))
        self.blocks, self.norm = nn.ModuleList(PreNorm(768, 12) for _ in range(layers)), nn.LayerNorm(768)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), 1, 768), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.norm(x[:, 0])


class SwinBlock(nn.Module):
    def __init__(self, width, heads, shift):
        super().__init__()
        self.norm1, self.norm2, self.attend, self.mlp, self.shift = nn.LayerNorm(width), nn.LayerNorm(width), Attend(width, heads), mlp(width), shift
        self.bias = nn.Parameter(torch.zeros(169, heads))
        i = torch.arange(49)
        self.register_buffer("places", (i[:, None] // 7 - i // 7 + 6) * 13 + i[:, None] % 7 - i % 7 + 6)

    def forward(self, x):
        n, side, _, c = x.shape
        y = self.norm1(x)
        if self.shift:
            y = y.roll((-self.shift, -self.shift), (1, 2))
        y = y.view(n, side // 7, 7, side // 7, 7, c).transpose(2, 3).reshape(-1, 49, c)
        y = self.attend(y, self.bias[self.places].permute(2, 0, 1)[None].to(y.dtype if not torch.is_autocast_enabled() else torch.bfloat16))
        y = y.view(n, side // 7, side // 7, 7, 7, c).transpose(2, 3).reshape(x.shape)
        if self.shift:
            y = y.roll((self.shift, self.shift), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class Merge(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n, side, _, c = x.shape
        x = x.view(n, side // 2, 2, side // 2, 2, c).transpose(2, 3).reshape(n, side // 2, side // 2, 4 * c)
        return self.linear(self.norm(x))


class SwinBody(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, layers = nn.Conv2d(3, 96, 4, 4), [nn.LayerNorm(96)]
        for stage, count in enumerate((2, 2, 6, 2)):
            if stage:
                layers.append(Merge(96 << stage))
            layers += [SwinBlock(96 << stage, 3 << stage, i % 2 * 3) for i in range(count)]
        self.layers = nn.Sequential(*layers, nn.LayerNorm(768))

    def forward(self, x):
        return self.layers(self.patches(x).permute(0, 2, 3, 1)).mean((1, 2))


class Segmenter(Family):
    def __init__(self, batch):
        super().__init__()
        self.put_images("x", batch, 3, 256, 256)
        self.ids("labels", 21, batch, 256, 256)
        pair = lambda i, o: nn.Sequential(norm_act(i, o, 3), norm_act(o, o, 3))
        widths = (64, 128, 256, 512)
        self.down = nn.ModuleList(pair(i, o) for i, o in zip((3, *widths), widths))
        self.middle = pair(512, 1024)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(2 * o, o, 2, 2) for o in widths)
        self.up, self.head = nn.ModuleList(pair(2 * o, o) for o in widths), nn.Conv2d(64, 21, 1)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x, skips = self.x, []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for i in (3, 2, 1, 0):
            x = self.up[i](torch.cat([skips[i], self.grow[i](x)], 1))
        return F.cross_entropy(self.head(x), self.labels)


class DiffusionBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.GroupNorm(32, i), nn.GroupNorm(32, o), nn.GroupNorm(32, o)
        self.conv1, self.conv2, self.time = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1), nn.Linear(1280, o)
        self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        self.enter, self.leave, self.up, self.down = nn.Linear(o, o), nn.Linear(o, o), nn.Linear(o, 8 * o), nn.Linear(4 * o, o)
        self.norm4, self.norm5, self.norm6 = nn.LayerNorm(o), nn.LayerNorm(o), nn.LayerNorm(o)
        self.own, self.text = AttendTo(o, 8), AttendTo(o, 8, 768)

    def forward(self, x, t, text):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        x = self.skip(x) + self.conv2(F.silu(self.norm2(y)))
        h = self.enter(self.norm3(x).flatten(2).transpose(1, 2))
        y = self.norm4(h)
        h = h + self.own(y, y)
        h = h + self.text(self.norm5(h), text)
        a, b = self.up(self.norm6(h)).chunk(2, -1)
        h = h + self.down(a * F.gelu(b))
        return x + self.leave(h).transpose(1, 2).reshape(x.shape)


class LatentDiffusion(Family):
    def __init__(self, batch, *widths):
        super().__init__()
        self.put_images("x", batch, 4, 64, 64)
        self.put_images("noise", batch, 4, 64, 64)
        self.put("text", batch, 77, 768)
        self.put("t", batch, 320)
        self.time = nn.Sequential(nn.Linear(320, 1280), nn.SiLU(), nn.Linear(1280, 1280))
        self.start = nn.Conv2d(4, 320, 3, padding=1)
        self.shrinks = nn.ModuleList(nn.Conv2d(i, o, 3, 2, 1) for i, o in zip(widths, widths[1:]))
        self.down = nn.ModuleList(DiffusionBlock(c, c) for c in widths)
        self.middle = DiffusionBlock(widths[-1], widths[-1])
        up, skips, h = [], [c for c in widths for _ in range(2)], widths[-1]
        for c in reversed(widths):
            for _ in range(2):
                up.append(DiffusionBlock(h + skips.pop(), c))
                h = c
        self.up = nn.ModuleList(up)
        self.grows = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for c in reversed(widths[1:]))
        self.last, self.out = nn.GroupNorm(32, 320), nn.Conv2d(320, 4, 3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        t, h = self.time(self.t), self.start(self.x)
        skips = [h]
        for i, down in enumerate(self.down):
            if i:
                h = self.shrinks[i - 1](h)
                skips.append(h)
            h = down(h, t, self.text)
            skips.append(h)
        h = self.middle(h, t, self.text)
        for i in range(len(self.down)):
            for j in range(2):
                h = self.up[2 * i + j](torch.cat([h, skips.pop()], 1), t, self.text)
            if i < len(self.grows):
                h = self.grows[i](F.interpolate(h, scale_factor=2))
        return F.mse_loss(self.out(F.silu(self.last(h))), self.noise)


class DiT(Family):
    def __init__(self, batch, layers):
        super().__init__()
        self.put_images("x", batch, 4, 32, 32)
        self.put("noise", batch, 256, 16)
        self.put("t", batch, 256)
        self.time, self.patches = nn.Sequential(nn.Linear(256, 768), nn.SiLU(), nn.Linear(768, 768)), nn.Conv2d(4, 768, 2, 2)
        self.positions, self.out = nn.Parameter(torch.zeros(256, 768)), nn.Linear(768, 16)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.Linear(768, 6 * 768), AttendTo(768, 12), mlp(768)]) for _ in range(layers))

    def forward(self):
        c = F.silu(self.time(self.t))
        x = self.patches(self.x).flatten(2).transpose(1, 2) + self.positions
        plain = lambda x: F.layer_norm(x, (768,), eps=1e-6)
        for modulate, attend, feed in self.blocks:
            m = modulate(c)[:, None].chunk(6, -1)
            h = plain(x) * (1 + m[1]) + m[0]
            x = x + m[2] * attend(h, h)
            x = x + m[5] * feed(plain(x) * (1 + m[4]) + m[3])
        return F.mse_loss(self.out(plain(x)), self.noise)


class BertBase(Family):
    def __init__(self, batch, layers):
        super().__init__()
        self.ids("tokens", 30522, batch, 512)
        self.ids("lengths", 512, batch)
        self.ids("labels", 30522, batch, 512)
        self.table, self.positions, self.norm = nn.Embedding(30522, 768), nn.Parameter(torch.zeros(512, 768)), nn.LayerNorm(768)
        make = lambda: nn.ModuleList([Attend(768, 12), nn.LayerNorm(768), mlp(768), nn.LayerNorm(768)])
        self.blocks, self.head = nn.ModuleList(make() for _ in range(layers)), nn.Linear(768, 30522)

    def forward(self):
        mask = (torch.arange(512, device=self.lengths.device) <= self.lengths[:, None])[:, None, None]
        x = self.norm(self.table(self.tokens) + self.positions)
        for attend, norm1, feed, norm2 in self.blocks:
            x = norm1(x + attend(x, mask))
            x = norm2(x + feed(x))
        return F.cross_entropy(self.head(x).flatten(0, 1), self.labels.flatten())


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(2048), nn.RMSNorm(2048)
        self.q, self.k, self.v, self.out = (nn.Linear(2048, o, bias=False) for o in (2048, 512, 512, 2048))
        self.gate, self.up, self.down = nn.Linear(2048, 5632, bias=False), nn.Linear(2048, 5632, bias=False), nn.Linear(5632, 2048, bias=False)

    def forward(self, x, cos, sin):
        h = self.norm1(x)
        q, k, v = (f(h).view(*x.shape[:2], -1, 64).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = turned(q, cos, sin).to(v.dtype), turned(k, cos, sin).to(v.dtype)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama1B(Family):
    def __init__(self, batch, layers, length, words):
        super().__init__()
        self.ids("tokens", words, batch, length)
        self.ids("labels", words, batch, length)
        self.table, self.norm, self.head = nn.Embedding(words, 2048), nn.RMSNorm(2048), nn.Linear(2048, words, bias=False)
        self.blocks = nn.ModuleList(LlamaBlock() for _ in range(layers))
        angle = torch.arange(length)[:, None] / 10000 ** (torch.arange(32) / 32)
        self.register_buffer("cos", torch.cat([angle, angle], 1).cos())
        self.register_buffer("sin", torch.cat([angle, angle], 1).sin())

    def forward(self):
        x = self.table(self.tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), self.labels.flatten())


class Whisper(Family):
    def __init__(self, batch, layers):
        super().__init__()
        self.put("x", batch, 80, 3000)
        self.ids("tokens", 51865, batch, 448)
        self.ids("labels", 51865, batch, 448)
        self.conv1, self.conv2 = nn.Conv1d(80, 768, 3, padding=1), nn.Conv1d(768, 768, 3, 2, 1)
        self.sounds, self.positions = nn.Parameter(torch.zeros(1500, 768)), nn.Parameter(torch.zeros(448, 768))
        self.encoder, self.norm1 = nn.ModuleList(PreNorm(768, 12) for _ in range(layers)), nn.LayerNorm(768)
        self.decoder, self.norm2 = nn.ModuleList(PreNorm(768, 12, True, 768) for _ in range(layers)), nn.LayerNorm(768)
        self.table, self.head = nn.Embedding(51865, 768), nn.Linear(768, 51865)

    def forward(self):
        x = F.gelu(self.conv2(F.gelu(self.conv1(self.x)))).transpose(1, 2) + self.sounds
        for block in self.encoder:
            x = block(x)
        sound, y = self.norm1(x), self.table(self.tokens) + self.positions
        for block in self.decoder:
            y = block(y, sound)
        return F.cross_entropy(self.head(self.norm2(y)).flatten(0, 1), self.labels.flatten())


class WaveEncoder(Family):
    def __init__(self, batch, layers):
        super().__init__()
        self.put("x", batch, 1, 160000)
        self.convs, self.norms, i = nn.ModuleList(), nn.ModuleList(), 1
        for window, stride in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
            self.convs.append(nn.Conv1d(i, 512, window, stride))
            self.norms.append(nn.LayerNorm(512))
            i = 512
        self.norm, self.project, self.place = nn.LayerNorm(512), nn.Linear(512, 768), nn.Conv1d(768, 768, 127, padding=63, groups=16)
        self.blocks, self.head = nn.ModuleList(PreNorm(768, 12) for _ in range(layers)), nn.Linear(768, 320)
        self.ids("labels", 320, batch, 499)

    def forward(self):
        x = self.x
        for conv, norm in zip(self.convs, self.norms):
            x = F.gelu(norm(conv(x).transpose(1, 2))).transpose(1, 2)
        x = self.project(self.norm(x.transpose(1, 2)))
        x = x + F.gelu(self.place(x.transpose(1, 2)).transpose(1, 2))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x).flatten(0, 1), self.labels.flatten())


class LSTMLarge(Family):
    def __init__(self, batch):
        super().__init__()
        self.ids("tokens", 10000, 70, batch)
        self.ids("labels", 10000, 70, batch)
        self.table, self.lstm, self.head = nn.Embedding(10000, 1024), nn.LSTM(1024, 1024, 2), nn.Linear(1024, 10000)

    def forward(self):
        return F.cross_entropy(self.head(self.lstm(self.table(self.tokens))[0]).flatten(0, 1), self.labels.flatten())


class VideoBlock(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        norm = lambda i, window, stride: nn.Sequential(nn.Conv3d(i, o, window, stride, window // 2), nn.BatchNorm3d(o))
        self.body = nn.Sequential(norm(i, 3, stride), nn.ReLU(), norm(o, 3, 1))
        self.skip = norm(i, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.skip(x) + self.body(x))


class Video(Family):
    def __init__(self, batch):
        super().__init__()
        self.register_buffer("x", (torch.rand(batch, 3, 16, 112, 112) - 0.5).to(memory_format=torch.channels_last_3d))
        self.ids("labels", 400, batch)
        layers, i = [nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3)), nn.BatchNorm3d(64), nn.ReLU()], 64
        for n in range(8):
            layers.append(VideoBlock(i, 64 << n // 2, 2 if n % 2 == 0 and n else 1))
            i = 64 << n // 2
        self.body, self.head = nn.Sequential(*layers), nn.Linear(512, 400)
        self.to(memory_format=torch.channels_last_3d)

    def forward(self):
        return F.cross_entropy(self.head(self.body(self.x).mean((2, 3, 4))), self.labels)


class SuperResolution(Family):
    def __init__(self, batch):
        super().__init__()
        self.put_images("x", batch, 3, 96, 96)
        self.put_images("y", batch, 3, 192, 192)
        conv = lambda i, o: nn.Conv2d(i, o, 3, padding=1)
        self.start, self.up, self.out = conv(3, 64), conv(64, 256), conv(64, 3)
        self.blocks = nn.ModuleList(nn.Sequential(conv(64, 64), nn.ReLU(), conv(64, 64)) for _ in range(16))
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = h = self.start(self.x)
        for block in self.blocks:
            h = h + block(h)
        return (self.out(F.pixel_shuffle(self.up(x + h), 2)) - self.y).abs().mean()


def vit(batch, layers):
    return Images(batch, ViTBody(layers), 768, pool=False)


def swin(batch):
    return Images(batch, SwinBody(), 768, pool=False)


# By each name the constructor, and its arguments on a GPU and on a CPU, the batch first.
SIZES = {
    "vgg16": (vgg16, (64,), (1,)), "densenet121": (dense_net, (64,), (2,)), "efficientnet b0": (efficient_net, (64,), (2,)),
    "convnext tiny": (convnext, (64,), (2,)), "vit b16": (vit, (64, 12), (2, 3)), "swin tiny": (swin, (64,), (2,)),
    "segmenter": (Segmenter, (16,), (1,)), "latent diffusion": (LatentDiffusion, (4, 320, 640, 1280), (1, 320, 640)),
    "dit b2": (DiT, (32, 12), (2, 3)), "bert base": (BertBase, (16, 12), (1, 3)),
    "llama 1b": (Llama1B, (2, 16, 2048, 32000), (1, 2, 512, 8192)), "whisper small": (Whisper, (8, 12), (1, 2)),
    "wave encoder": (WaveEncoder, (8, 12), (1, 2)), "lstm large": (LSTMLarge, (64,), (16,)), "video 3d": (Video, (8,), (1,)),
    "super resolution": (SuperResolution, (16,), (2,)),
}


def sized(make, batch, *sizes):
    return lambda: make(batch * TIMES, *sizes)


MODELS = {name: sized(make, *gpu) for name, (make, gpu, _) in SIZES.items()}
MODELS_OF_CPU = {f"small {name}": sized(make, *cpu) for name, (make, _, cpu) in SIZES.items()}

if __name__ == "__main__":
    serve({
        f"{how} {kind} {name}": functools.partial(job, f"small {name}", how == "compile", kind == "forward")
        for name in SIZES for kind in ("step", "forward") for how in ("eager", "compile")
    })
