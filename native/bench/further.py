"""The models of package ir/irtest/families of further kinds (Further) in PyTorch, as families.py.

Run as a program, it times their training steps: "eager NAME" and "compile NAME".

    PYTHON=python3 go test -run='^$' -bench=Further -timeout=2h ./native/cpu
"""
import functools

import torch
import torch.nn.functional as F
from torch import nn

from families import Family, TIMES as T, conv_norm, job, mlp
from models import norm_act
from serve import serve


class Mixer(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 4 * T, 3, 112, 112)
        self.ids("labels", 100, 4 * T)
        self.patches = nn.Conv2d(3, 256, 8, 8)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(256), mlp(nn.GELU, 196, 128, 196), nn.LayerNorm(256), mlp(nn.GELU, 256, 1024, 256)]) for _ in range(4))
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 100)

    def forward(self):
        x = self.patches(self.x).flatten(2).mT
        for n1, t, n2, c in self.blocks:
            x = x + t(n1(x).mT).mT
            x = x + c(n2(x))
        return F.cross_entropy(self.head(self.norm(x).mean(1)), self.labels)


class GAT(Family):
    def __init__(self):
        super().__init__()
        self.nodes, edges = 2000 * T, 30000 * T
        self.put("x", self.nodes, 64)
        self.ids("source", self.nodes, edges)
        self.ids("target", self.nodes, edges)
        self.ids("labels", 16, self.nodes)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(2))
        self.a = nn.ParameterList(torch.rand(4, 16) - 0.5 for _ in range(4))
        self.head = nn.Linear(64, 16)

    def forward(self):
        x = self.x
        to = self.target[:, None].expand(-1, 4)
        for i, layer in enumerate(self.layers):
            h = layer(x).view(-1, 4, 16)
            s, t = (h * self.a[2 * i]).sum(2), (h * self.a[2 * i + 1]).sum(2)
            e = F.leaky_relu(s[self.source] + t[self.target], 0.2)
            top = torch.full_like(t, -1e30, dtype=e.dtype).scatter_reduce(0, to, e.detach(), "amax")
            p = (e - top[self.target]).exp()
            total = torch.zeros_like(t, dtype=p.dtype).index_add(0, self.target, p)
            p = p / (total[self.target] + 1e-9)
            sent = h[self.source] * p[:, :, None]
            x = F.elu(torch.zeros_like(h, dtype=sent.dtype).index_add(0, self.target, sent).flatten(1))
        return F.cross_entropy(self.head(x), self.labels)


class BN(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x.flatten(0, -2)).view(x.shape)


class PointNet(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 4 * T, 1024, 3)
        self.ids("labels", 40, 4 * T)
        def seq(*s):
            return nn.Sequential(*(m for i, o in zip(s, s[1:]) for m in (nn.Linear(i, o), BN(o), nn.ReLU())))
        self.a, self.b, self.head = seq(3, 64, 128, 1024), seq(1024, 512, 256), nn.Linear(256, 40)

    def forward(self):
        return F.cross_entropy(self.head(self.b(self.a(self.x).amax(1))), self.labels)


class ShuffleNet(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * T, 3, 112, 112)
        self.ids("labels", 100, 8 * T)
        self.stem, self.wide = norm_act(3, 24, 3, 2), nn.Conv2d(24, 240, 1)
        self.blocks, i = nn.ModuleList(), 240
        for k, c in enumerate((240, 240, 240, 480, 480)):
            s = 2 if k % 3 == 0 else 1
            self.blocks.append(nn.ModuleList([norm_act(i, c // 4, 1, 1, 3), conv_norm(c // 4, c // 4, 3, s, c // 4), conv_norm(c // 4, c, 1, 1, 3)]))
            i = c
        self.head = nn.Linear(480, 100)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = self.wide(self.stem(self.x))
        for a, d, o in self.blocks:
            y = o(d(F.channel_shuffle(a(x), 3)))
            x = F.relu(x + y if x.shape == y.shape else y)
        return F.cross_entropy(self.head(x.mean((2, 3))), self.labels)


class ResNeXt(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * T, 3, 112, 112)
        self.ids("labels", 100, 8 * T)
        self.stem, self.blocks, i = norm_act(3, 64, 7, 4), nn.ModuleList(), 64
        for k, c in enumerate((256, 256, 512, 512)):
            s = 2 if k == 2 else 1
            self.blocks.append(nn.ModuleList([nn.Sequential(norm_act(i, c // 2, 1), norm_act(c // 2, c // 2, 3, s, 32), conv_norm(c // 2, c, 1)), conv_norm(i, c, 1, s) if i != c else nn.Identity()]))
            i = c
        self.head = nn.Linear(512, 100)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = self.stem(self.x)
        for body, skip in self.blocks:
            x = F.relu(body(x) + skip(x))
        return F.cross_entropy(self.head(x.mean((2, 3))), self.labels)


class Style(Family):
    def __init__(self):
        super().__init__()
        self.n = 2 * T
        self.put("z", self.n, 128)
        self.map, self.first = mlp(nn.SiLU, 128, 128, 128), nn.Parameter(torch.rand(1, 128, 8, 8))
        self.styles, self.w, self.b, self.s, i, side = nn.ModuleList(), nn.ParameterList(), nn.ParameterList(), nn.ParameterList(), 128, 8
        for k, c in enumerate((128, 64, 32)):
            side *= 2
            self.styles.append(nn.Linear(128, i))
            self.w.append(torch.rand(1, c, i, 3, 3) - 0.5)
            self.b.append(torch.rand(1, c, 1, 1))
            self.s.append(torch.rand(1))
            self.put(f"noise{k}", self.n, 1, side, side)
            i = c
        self.rgb = nn.Conv2d(32, 3, 1)
        self.put_images("image", self.n, 3, 64, 64)

    def forward(self):
        z, n = self.map(self.z), self.n
        x = self.first.expand(n, -1, -1, -1)
        for k in range(3):
            i = x.shape[1]
            x = F.interpolate(x, scale_factor=2, mode="bilinear")
            w = self.w[k] * (self.styles[k](z) + 1).view(n, 1, i, 1, 1)
            w = w * (w.square().sum((2, 3, 4), keepdim=True) + 1e-8).rsqrt()
            y = F.conv2d(x.reshape(1, n * i, *x.shape[2:]), w.flatten(0, 1).to(x.dtype), padding=1, groups=n)
            x = F.leaky_relu(y.view(n, -1, *x.shape[2:]) + self.b[k] + getattr(self, f"noise{k}") * self.s[k], 0.2)
        return F.mse_loss(self.rgb(x).float(), self.image)


class VQVAE(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 4 * T, 3, 64, 64)
        self.enc = nn.Sequential(nn.Conv2d(3, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 64, 1))
        self.book = nn.Parameter(torch.rand(512, 64))
        self.dec = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1))
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = self.enc(self.x).permute(0, 2, 3, 1)
        flat = x.reshape(-1, 64)
        far = (self.book.square().sum(1)[None] - 2 * flat @ self.book.T).detach()
        q = F.embedding(far.argmin(1), self.book)
        loss = F.mse_loss(q, flat.detach().float()) + 0.25 * F.mse_loss(flat.float(), q.detach())
        y = (flat + (q - flat).detach()).view(x.shape).permute(0, 3, 1, 2)
        return loss + F.mse_loss(self.dec(y).float(), self.x)


class CRF(Family):
    def __init__(self):
        super().__init__()
        self.ids("tokens", 5000, 8 * T, 64)
        self.ids("tags", 24, 64, 8 * T)
        self.words, self.hidden, self.head = nn.Embedding(5000, 128), nn.Linear(128, 128), nn.Linear(128, 24)
        self.moves = nn.Parameter(torch.rand(24, 24))

    def forward(self):
        s = self.head(F.relu(self.hidden(self.words(self.tokens)))).transpose(0, 1).float()
        a = s[0]
        for t in range(1, 64):
            a = torch.logsumexp(a[:, :, None] + self.moves, 1) + s[t]
        hit = s.gather(2, self.tags[:, :, None]).sum((0, 2)) + self.moves[self.tags[:-1], self.tags[1:]].sum(0)
        return (torch.logsumexp(a, 1) - hit).mean()


class FNet(Family):
    def __init__(self):
        super().__init__()
        self.ids("tokens", 5000, 4 * T, 256)
        self.ids("labels", 100, 4 * T, 256)
        self.words = nn.Embedding(5000, 256)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(256), mlp(nn.GELU, 256, 1024, 256), nn.LayerNorm(256)]) for _ in range(4))
        self.head = nn.Linear(256, 100)

    def forward(self):
        x = self.words(self.tokens)
        for n1, m, n2 in self.blocks:
            x = n1(x + torch.fft.fft2(x.float()).real)
            x = n2(x + m(x))
        return F.cross_entropy(self.head(x).flatten(0, 1), self.labels.flatten())


class Contrastive(Family):
    def __init__(self):
        super().__init__()
        self.put("a", 256 * T, 512)
        self.put("b", 256 * T, 512)
        self.ta, self.tb, self.heat = mlp(nn.ReLU, 512, 512, 128), mlp(nn.ReLU, 512, 512, 128), nn.Parameter(torch.ones(1))

    def forward(self):
        a, b = self.ta(self.a), self.tb(self.b)
        a, b = (x * (x.square().sum(1, keepdim=True) + 1e-6).rsqrt() for x in (a, b))
        logits = a @ b.T * self.heat.exp()
        labels = torch.arange(len(a), device=a.device)
        return F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)


class CSP(nn.Module):
    def __init__(self, i, c):
        super().__init__()
        self.i, self.a, self.b, self.o = norm_act(i, c, 1, act=nn.SiLU), norm_act(c // 2, c // 2, 3, act=nn.SiLU), norm_act(c // 2, c // 2, 3, act=nn.SiLU), norm_act(c * 3 // 2, c, 1, act=nn.SiLU)

    def forward(self, x):
        p, q = self.i(x).chunk(2, 1)
        return self.o(torch.cat([p, q, q + self.b(self.a(q))], 1))


class Detector(Family):
    def __init__(self):
        super().__init__()
        n, S = 2 * T, nn.SiLU
        self.put_images("x", n, 3, 160, 160)
        self.first = nn.Sequential(norm_act(3, 32, 3, 2, act=S), norm_act(32, 64, 3, 2, act=S), CSP(64, 64), norm_act(64, 128, 3, 2, act=S), CSP(128, 128))
        self.second = nn.Sequential(norm_act(128, 256, 3, 2, act=S), CSP(256, 256), norm_act(256, 128, 1, act=S))
        self.spp, self.last = norm_act(512, 256, 1, act=S), CSP(384, 128)
        self.h0, self.h1 = nn.Conv2d(128, 85, 1), nn.Conv2d(256, 85, 1)
        self.put_images("t0", n, 85, 20, 20)
        self.put_images("t1", n, 85, 10, 10)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        fine = self.first(self.x)
        ps = [self.second(fine)]
        for _ in range(3):
            ps.append(F.max_pool2d(ps[-1], 5, 1, 2))
        deep = self.spp(torch.cat(ps, 1))
        fine = self.last(torch.cat([F.interpolate(deep, scale_factor=2, mode="nearest"), fine], 1))
        return sum(F.binary_cross_entropy_with_logits(h(x), t.sigmoid()) for h, x, t in ((self.h0, fine, self.t0), (self.h1, deep, self.t1)))


class ConvLSTM(Family):
    def __init__(self):
        super().__init__()
        self.register_buffer("x", torch.rand(8, T, 4, 32, 32).to(torch.float) - 0.5)
        self.put_images("next", 8 * T, 4, 32, 32)
        self.gates, self.out = (m.to(memory_format=torch.channels_last) for m in (nn.Conv2d(36, 128, 3, padding=1), nn.Conv2d(32, 4, 1)))

    def forward(self):
        h = c = torch.zeros(T, 32, 32, 32, device=self.x.device).to(memory_format=torch.channels_last)
        ys = []
        for t in range(8):
            i, f, g, o = self.gates(torch.cat([self.x[t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            ys.append(h)
        return F.mse_loss(self.out(torch.cat(ys)).float(), self.next)


class SpatialTransformer(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * T, 3, 64, 64)
        self.ids("labels", 10, 8 * T)
        self.stem, self.where, self.next, self.head = norm_act(3, 32, 3, 2), mlp(nn.ReLU, 32, 32, 6), norm_act(32, 64, 3, 2), nn.Linear(64, 10)
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = self.stem(self.x)
        theta = self.where(x.mean((2, 3))).view(-1, 2, 3)
        y = F.grid_sample(x, F.affine_grid(theta, list(x.shape), align_corners=False).to(x.dtype), align_corners=False)
        return F.cross_entropy(self.head(self.next(y).mean((2, 3))), self.labels)


class Word2Vec(Family):
    def __init__(self):
        super().__init__()
        self.ids("centre", 50000, 1024 * T)
        self.ids("others", 50000, 1024 * T, 11)
        self.i, self.o = nn.Embedding(50000, 128), nn.Embedding(50000, 128)

    def forward(self):
        dots = (self.o(self.others) @ self.i(self.centre)[:, :, None])[..., 0]
        sign = torch.ones(11, device=dots.device)
        sign[0] = -1
        return F.softplus(dots * sign).mean()


class CycleGAN(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", T, 3, 128, 128)
        def norm(c):
            return [nn.InstanceNorm2d(c, affine=True), nn.ReLU()]
        def mirrored(i, o, w):
            return [nn.ReflectionPad2d(w // 2), nn.Conv2d(i, o, w)]
        self.a = nn.Sequential(*mirrored(3, 32, 7), *norm(32), nn.Conv2d(32, 64, 3, 2, 1), *norm(64), nn.Conv2d(64, 128, 3, 2, 1), *norm(128))
        self.blocks = nn.ModuleList(nn.Sequential(*mirrored(128, 128, 3), *norm(128), *mirrored(128, 128, 3), *norm(128)) for _ in range(3))
        up = lambda i, o: [nn.ConvTranspose2d(i, o, 3, 2, 1, 1), *norm(o)]
        self.b = nn.Sequential(*up(128, 64), *up(64, 32), *mirrored(32, 3, 7), nn.Tanh())
        self.to(memory_format=torch.channels_last)

    def forward(self):
        x = self.a(self.x)
        for block in self.blocks:
            x = x + block(x)
        return (self.b(x) - self.x).abs().mean()


class Sine(nn.Module):
    def forward(self, x):
        return x.sin()


class Hyena(Family):
    def __init__(self):
        super().__init__()
        self.ids("tokens", 1000, T, 1024)
        self.ids("labels", 1000, T, 1024)
        self.words, self.head = nn.Embedding(1000, 128), nn.Linear(128, 1000)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(128), nn.Linear(128, 384), mlp(Sine, 1, 64, 128), nn.Linear(128, 128)]) for _ in range(2))

    def forward(self):
        x = self.words(self.tokens)
        at = torch.arange(1024, device=x.device)[:, None] / 1024
        for n, i, f, o in self.blocks:
            a, b, c = i(n(x)).chunk(3, 2)
            v, w = (a * b).mT.float(), f(at).T.float()
            y = torch.fft.irfft(torch.fft.rfft(v, n=2048) * torch.fft.rfft(w, n=2048), n=2048)[..., :1024].mT
            x = x + o(y * c)
        return F.cross_entropy(self.head(x).flatten(0, 1), self.labels.flatten())


class KAN(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 128 * T, 64)
        self.ids("labels", 10, 128 * T)
        s = (64, 128, 128, 10)
        self.spline = nn.ParameterList(torch.rand(i, o, 8) - 0.5 for i, o in zip(s, s[1:]))
        self.w = nn.ParameterList(torch.rand(i, o) - 0.5 for i, o in zip(s, s[1:]))

    def forward(self):
        x = self.x
        knots = torch.linspace(-1, 1, 8, device=x.device)
        for s, w in zip(self.spline, self.w):
            basis = (-((x.tanh()[..., None] - knots) * 4).square()).exp()
            x = torch.einsum("big,iog->bo", basis, s) + F.silu(x) @ w
        return F.cross_entropy(x, self.labels)


class Capsules(Family):
    def __init__(self):
        super().__init__()
        self.put_images("x", 8 * T, 1, 24, 24)
        self.ids("labels", 10, 8 * T)
        self.a, self.b, self.votes = nn.Conv2d(1, 64, 5, 2, 2), nn.Conv2d(64, 64, 5, 2, 2), nn.Parameter(torch.rand(288, 10, 8, 16) - 0.5)

    def forward(self):
        def squash(x):
            s = x.square().sum(-1, keepdim=True)
            return x * ((s + 1e-8).sqrt() / (s + 1))
        x = self.b(F.relu(self.a(self.x))).permute(0, 2, 3, 1)
        votes = torch.einsum("bpi,pcio->bpco", squash(x.reshape(8 * T, 288, 8)), self.votes)
        fixed = votes.detach()
        logits = torch.zeros(8 * T, 288, 10, device=x.device)
        for i in range(3):
            v = squash(torch.einsum("bpc,bpco->bco", logits.softmax(2), votes if i == 2 else fixed))
            if i < 2:
                logits = logits + torch.einsum("bpco,bco->bpc", fixed, v)
        long = (v.square().sum(2) + 1e-8).sqrt()
        hit = F.one_hot(self.labels, 10)
        return (hit * F.relu(0.9 - long).square() + 0.5 * (1 - hit) * F.relu(long - 0.1).square()).mean()


class ODE(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 128 * T, 16)
        self.ids("labels", 10, 128 * T)
        self.i, self.f, self.head = nn.Linear(16, 32), mlp(nn.Tanh, 32, 64, 32), nn.Linear(32, 10)

    def forward(self):
        y, h = self.i(self.x), 0.1
        for _ in range(16):
            k1 = self.f(y)
            k2 = self.f(y + h / 2 * k1)
            k3 = self.f(y + h / 2 * k2)
            k4 = self.f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return F.cross_entropy(self.head(y), self.labels)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.n1, self.n2, self.m = heads, nn.LayerNorm(width), nn.LayerNorm(width), mlp(nn.GELU, width, 4 * width, width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        h = self.n1(x)
        q, k, v = (f(h).unflatten(2, (self.heads, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.m(self.n2(x))


class Tabular(Family):
    def __init__(self):
        super().__init__()
        self.put("x", 64 * T, 40, 1)
        self.put("y", 64 * T, 1)
        self.w, self.b = nn.Parameter(torch.rand(40, 64)), nn.Parameter(torch.rand(40, 64))
        self.blocks, self.norm, self.head = nn.Sequential(*(Block(64, 8) for _ in range(3))), nn.LayerNorm(64), nn.Linear(64, 1)

    def forward(self):
        return F.mse_loss(self.head(self.norm(self.blocks(self.x * self.w + self.b).mean(1))).float(), self.y)


FURTHER = {
    "mixer": Mixer, "gat": GAT, "point net": PointNet, "shuffle net": ShuffleNet, "resnext": ResNeXt, "style": Style, "vqvae": VQVAE,
    "crf": CRF, "fnet": FNet, "contrastive": Contrastive, "detector": Detector, "conv lstm": ConvLSTM, "spatial transformer": SpatialTransformer,
    "word2vec": Word2Vec, "cycle gan": CycleGAN, "hyena": Hyena, "kan": KAN, "capsules": Capsules, "ode": ODE, "tabular": Tabular,
}

if __name__ == "__main__":
    serve({f"{how} {name}": functools.partial(job, name, how == "compile") for name in FURTHER for how in ("eager", "compile")})
