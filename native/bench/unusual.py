"""The models of package ir/irtest/families of unusual structure (Unusual) in PyTorch, as families.py. Their parameters and
inputs have the names that they have there.

Run as a program, it times their training steps: "eager NAME" and "compile NAME".

    PYTHON=python3 go test -run='^$' -bench=Unusual -timeout=2h ./native/cpu
"""
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn

from families import Family, TIMES as T, job
from serve import serve


class Named(Family):
    """A model whose first forward pass declares its parameters and inputs, with the sizes that they have in Go."""

    def __init__(self):
        super().__init__()
        self.names = {}
        with torch.no_grad():
            self()

    def declared(self, name, make):
        key = "at_" + name.replace("/", "_")
        if not hasattr(self, key):
            self.names[name] = key
            make(key)
        return getattr(self, key)

    def p(self, name, *dims, order=None):
        """A parameter. order permutes its axes to those of PyTorch's layer, in which it is stored."""
        def make(key):
            x = torch.zeros(dims) if name.endswith("/b") else torch.ones(dims) if len(dims) == 1 else (torch.rand(dims) - 0.5) * 2 / math.sqrt(math.prod(dims[:-1]))
            if order:
                x = x.permute(order).contiguous()
                last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(dims))
                x = x.to(memory_format=last) if last else x
            self.register_parameter(key, nn.Parameter(x))
            self.orders[name] = order
        return self.declared(name, make)

    def floats(self, name, *dims):
        return self.declared(name, lambda key: self.register_buffer(key, torch.rand(dims) - 0.5))

    def images(self, name, *dims):
        """Images, [batch, height, width, channels] in memory."""
        return self.floats(name, *dims).movedim(-1, 1)

    def constant(self, name, *rows):
        """A tensor of numbers that are known, which a captured step does not copy to a device."""
        return self.declared(name + "/at", lambda key: self.register_buffer(key, torch.tensor(rows)))

    def ids(self, name, below, *dims):
        return self.declared(name, lambda key: self.register_buffer(key, torch.randint(below, dims)))

    @functools.cached_property
    def orders(self):
        return {}

    def linear(self, name, x, out):
        return F.linear(x, self.p(name + "/w", x.shape[-1], out, order=(1, 0)), self.p(name + "/b", out))

    def matrix(self, name, x, out):
        return F.linear(x, self.p(name, x.shape[-1], out, order=(1, 0)))

    def mlp(self, name, x, act, *sizes):
        for i, out in enumerate(sizes):
            x = self.linear(f"{name}{i}", act(x) if i else x, out)
        return x

    def conv(self, name, x, window, out, stride=1, dilation=1, pad=None, mask=None):
        w = self.p(name + "/w", *(window if isinstance(window, tuple) else (window, window)), x.shape[1], out, order=(3, 2, 0, 1))
        if mask is not None:
            w = w * mask
        if pad is None:
            pad = tuple(dilation * (k // 2) for k in w.shape[2:])
        return F.conv2d(x, w, self.p(name + "/b", out), stride, pad, dilation)

    def batch_norm(self, name, x):
        c = x.shape[1]
        mean = self.declared(name + "/mean", lambda key: self.register_buffer(key, torch.zeros(c)))
        var = self.declared(name + "/variance", lambda key: self.register_buffer(key, torch.ones(c)))
        return F.batch_norm(x, mean, var, self.p(name + "/scale", c), self.p(name + "/b", c), training=True)

    def conv_relu(self, name, x, window, out, stride=1, dilation=1):
        return F.relu(self.batch_norm(name + "/norm", self.conv(name, x, window, out, stride, dilation)))

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.p(name + "/scale", x.shape[-1]), self.p(name + "/b", x.shape[-1]))

    def classify(self, x, classes):
        y = self.linear("head", x, classes)
        return F.cross_entropy(y.flatten(0, -2), self.ids("labels", classes, *x.shape[:-1]).flatten())


class Glow(Named):
    def forward(self):
        n = 8 * T
        x, logs = self.images("x", n, 32, 32, 3), 0
        for level in range(2):
            x = F.pixel_unshuffle(x, 2)
            c, pixels = x.shape[1], x.shape[2] * x.shape[3]
            for i in range(3):
                name = f"level{level}/step{i}"
                scale = self.p(name + "/scale", c)
                x = (x + self.p(name + "/shift/b", c)[:, None, None]) * scale[:, None, None]
                w = self.p(name + "/mix", c, c)
                x = F.conv2d(x, w.T[:, :, None, None])
                logs = logs + pixels * (scale.abs().log().sum() + torch.linalg.slogdet(w.float())[1])
                a, b = x.chunk(2, 1)
                h = F.relu(self.conv(name + "/mid", F.relu(self.conv(name + "/in", a, 3, 64)), 1, 64))
                shift, gate = self.conv(name + "/out", h, 3, c).chunk(2, 1)
                gate = (gate.float() + 2).sigmoid()
                x = torch.cat([a, (b + shift) * gate], 1)
                logs = logs + gate.log().sum() / n
        return 0.5 * x.square().mean() - logs / (32 * 32 * 3)


class FourierOperator(Named):
    def forward(self):
        side, width, modes, n = 64, 32, 12, 2 * T
        x = self.linear("lift", self.floats("x", n, side, side, 3), width)
        for i in range(4):
            name = f"layer{i}"
            f = torch.fft.rfft2(x.float(), dim=(1, 2))
            out = torch.zeros(n, side, side // 2 + 1, width, dtype=f.dtype, device=x.device)
            for which, rows in (("low", slice(0, modes)), ("high", slice(side - modes, side))):
                w = torch.complex(*(self.p(f"{name}/{which}/{part}", modes, modes, width, width) for part in ("re", "im")))
                out[:, rows, :modes] = torch.einsum("bxyi,xyio->bxyo", f[:, rows, :modes], w)
            x = F.gelu(torch.fft.irfft2(out, s=(side, side), dim=(1, 2)) + self.linear(name + "/w", x, width))
        return F.mse_loss(self.mlp("out", x, F.gelu, 64, 1).float(), self.floats("y", n, side, side, 1))


class WGANGP(Named):
    def critic(self, x):
        for i, c in enumerate((32, 64, 128)):
            x = F.leaky_relu(self.conv(f"conv{i}", x, 4, c, 2, pad=1), 0.2)
        return self.linear("head", x.permute(0, 2, 3, 1).flatten(1), 1)

    def forward(self):
        n = 8 * T
        real, fake, part = self.images("real", n, 32, 32, 3), self.images("fake", n, 32, 32, 3), self.floats("part", n, 1, 1, 1)
        loss = self.critic(fake).mean() - self.critic(real).mean()
        with torch.enable_grad():
            between = torch.lerp(real, fake, part).requires_grad_()
            slope, = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)
        long = (slope.square().sum((1, 2, 3)) + 1e-12).sqrt()
        return loss + 10 * (long - 1).square().mean()


class RAFT(Named):
    def forward(self):
        rows, columns, width, radius = 24, 32, 64, 3
        first, second = (self.images(name, T, 8 * rows, 8 * columns, 3) for name in ("first", "second"))
        def encode(x):
            x = F.relu(self.conv("encode0", x, 7, 32, 2))
            return self.conv("encode2", F.relu(self.conv("encode1", x, 3, 64, 2)), 3, width, 2)
        f1, f2 = (encode(x).flatten(2) for x in (first, second))
        levels = [((f1.mT @ f2) / 8).view(-1, 1, rows, columns).float()]
        for _ in range(2):
            levels.append(F.avg_pool2d(levels[-1], 2))
        h, inp = self.conv("context1", F.relu(self.conv("context0", first, 7, 32, 4)), 3, 2 * width, 2).chunk(2, 1)
        h, inp = h.tanh(), F.relu(inp)
        device = first.device
        y, x = torch.meshgrid(torch.arange(rows, device=device).float(), torch.arange(columns, device=device).float(), indexing="ij")
        start = at = torch.stack([x, y]).expand(T, -1, -1, -1)
        target, loss = self.images("flow", T, rows, columns, 2), 0
        off = torch.arange(-radius, radius + 1, device=device).float()
        dy, dx = torch.meshgrid(off, off, indexing="ij")
        near = torch.stack([dx, dy], 2)
        for _ in range(4):
            at = at.detach()
            seen = []
            for k, level in enumerate(levels):
                place = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**k + near
                grid = place * self.constant(f"scale{k}", 2 / (level.shape[3] - 1), 2 / (level.shape[2] - 1)) - 1
                seen.append(F.grid_sample(level, grid, align_corners=True).view(T, rows, columns, -1).permute(0, 3, 1, 2))
            flow = at - start
            c = F.relu(self.conv("motion0", torch.cat(seen, 1), 1, 64))
            c = F.relu(self.conv("motion1", torch.cat([c, flow], 1), 3, 62))
            x = torch.cat([inp, c, flow], 1)
            hx = torch.cat([h, x], 1)
            z, r = self.conv("gru/z", hx, 3, width).sigmoid(), self.conv("gru/r", hx, 3, width).sigmoid()
            q = self.conv("gru/q", torch.cat([r * h, x], 1), 3, width).tanh()
            h = h + z * (q - h)
            at = at + self.conv("flow1", F.relu(self.conv("flow0", h, 3, 64)), 3, 2)
            loss = 0.8 * loss + (at - start - target).abs().mean()
        return loss


class UNet3D(Named):
    def conv3(self, name, x, window, out, stride=1):
        w = self.p(name + "/w", window, window, window, x.shape[1], out, order=(4, 3, 0, 1, 2))
        return F.conv3d(x, w, self.p(name + "/b", out), stride, window // 2)

    def block(self, name, x, c):
        for i in range(2):
            layer = f"{name}/{i}"
            y = F.instance_norm(self.conv3(layer, x, 3, c), weight=self.p(layer + "/scale", c), bias=self.p(layer + "/shift/b", c))
            x = F.leaky_relu(y, 0.01)
        return x

    def forward(self):
        x, skips = self.images("x", T, 24, 24, 24, 2), []
        for i, c in enumerate((16, 32, 64)):
            x = self.block(f"down{i}", self.conv3(f"half{i}", x, 3, c, 2) if i else x, c)
            skips.append(x)
        for i, c in enumerate((32, 16)):
            name = f"up{i}"
            w = self.p(name + "/w", 2, 2, 2, x.shape[1], c, order=(3, 4, 0, 1, 2))
            x = F.conv_transpose3d(x, w, self.p(name + "/b", c), 2)
            x = self.block(name, torch.cat([x, skips[1 - i]], 1), c)
        logits = self.conv3("head", x, 1, 3).float()
        labels = self.ids("labels", 3, T, 24, 24, 24)
        p, hot = logits.softmax(1), F.one_hot(labels, 3).movedim(-1, 1).float()
        dice = 2 * (p * hot).sum((2, 3, 4)) / (p.sum((2, 3, 4)) + hot.sum((2, 3, 4)) + 1e-5)
        return F.cross_entropy(logits, labels) - dice.mean()


class DeepLab(Named):
    def forward(self):
        n = 2 * T
        low = self.conv_relu("low", self.conv_relu("stem", self.images("x", n, 128, 128, 3), 3, 32, 2), 3, 64, 2)
        x = self.conv_relu("deep", low, 3, 128, 2)
        for i, d in enumerate((2, 4)):
            x = x + self.conv_relu(f"block{i}", x, 3, 128, 1, d)
        parts = [self.conv_relu("aspp", x, 1, 64)] + [self.conv_relu(f"aspp{i}", x, 3, 64, 1, d) for i, d in enumerate((6, 12, 18))]
        whole = F.relu(self.linear("whole", x.mean((2, 3)), 64))[:, :, None, None]
        x = self.conv_relu("join", torch.cat(parts + [whole.expand(-1, -1, *x.shape[2:]).to(parts[0].dtype)], 1), 1, 64)
        x = torch.cat([F.interpolate(x, size=low.shape[2:], mode="bilinear"), self.conv_relu("lateral", low, 1, 16)], 1)
        logits = F.interpolate(self.conv("head", self.conv_relu("mix", x, 3, 64), 1, 21), size=(128, 128), mode="bilinear")
        return F.cross_entropy(logits, self.ids("labels", 21, n, 128, 128))


class PixelCNN(Named):
    def masked(self, name, x, window, out, middle):
        mask = torch.zeros(window * window, device=x.device)
        mask[: window * window // 2] = 1
        mask[window * window // 2] = middle
        return self.conv(name, x, window, out, mask=mask.view(window, window))

    def forward(self):
        x = self.masked("in", self.images("x", 4 * T, 28, 28, 1), 7, 32, 0)
        for i in range(5):
            a, b = self.masked(f"block{i}", x, 3, 64, 1).chunk(2, 1)
            y = self.linear(f"block{i}/out", (a.tanh() * b.sigmoid()).permute(0, 2, 3, 1), 32)
            x = x + y.permute(0, 3, 1, 2)
        return self.classify(F.relu(self.linear("last", F.relu(x.permute(0, 2, 3, 1)), 64)), 256)


class Inception(Named):
    def forward(self):
        x = self.conv_relu("down", self.conv_relu("stem", self.images("x", 4 * T, 96, 96, 3), 3, 32, 2), 3, 64, 2)
        for i in range(2):
            def conv(name, x, h, w, out):
                return self.conv_relu(f"block{i}/{name}", x, (h, w), out)
            one = conv("one", x, 1, 1, 48)
            long = conv("long2", conv("long1", conv("long0", x, 1, 1, 32), 1, 7, 32), 7, 1, 48)
            deep = conv("deep2", conv("deep1", conv("deep0", x, 1, 1, 32), 7, 1, 32), 1, 7, 32)
            deep = conv("deep4", conv("deep3", deep, 7, 1, 32), 1, 7, 48)
            pooled = conv("pool", F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), 1, 1, 48)
            x = torch.cat([one, long, deep, pooled], 1)
        return self.classify(F.max_pool2d(x, 3, 2, 1).mean((2, 3)), 100)


class MAML(Named):
    def forward(self):
        tasks, sizes = 16 * T, (1, 64, 64, 1)
        def loss(x, y, weights):
            for i in range(3):
                x = torch.baddbmm(weights[2 * i + 1], x.tanh() if i else x, weights[2 * i])
            return (x.float() - y).square().mean((1, 2)).sum()
        x, y = self.floats("x", tasks, 10, 1), self.floats("y", tasks, 10, 1)
        with torch.enable_grad():
            weights = []
            for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
                weights += [self.p(f"layer{i}/w", a, b).expand(tasks, -1, -1), self.p(f"layer{i}/b", b).expand(tasks, 1, -1)]
            for _ in range(3):
                slopes = torch.autograd.grad(loss(x, y, weights), weights, create_graph=True)
                weights = [w - 0.1 * s for w, s in zip(weights, slopes)]
        return loss(self.floats("query/x", tasks, 10, 1), self.floats("query/y", tasks, 10, 1), weights) / tasks


class HashGrid(Named):
    def forward(self):
        points, entries = 4096 * T, 1 << 14
        x = self.floats("x", points, 3) + 0.5
        parts = []
        corner, primes = self.constant("corner", *([i >> j & 1 for j in range(3)] for i in range(8))), self.constant("primes", 1, 2654435761, 805459861)
        for i in range(8):
            scaled = x * math.floor(16 * 1.5**i)
            low = scaled.floor()
            rest = (scaled - low)[:, None]
            code = (low.long()[:, None] + corner) * primes
            row = (code[..., 0] ^ code[..., 1] ^ code[..., 2]) & (entries - 1)
            weight = torch.where(corner == 1, rest, 1 - rest).prod(2)
            parts.append((F.embedding(row, self.p(f"table{i}", entries, 2)) * weight[..., None]).sum(1))
        return F.mse_loss(self.mlp("colour", torch.cat(parts, 1), F.relu, 64, 64, 4).float().sigmoid(), self.floats("y", points, 4))


class Forces(Named):
    def energy(self, at):
        atoms, edges, width, waves = 256 * T, 3072 * T, 32, 16
        kinds, sources, to = self.ids("kinds", 10, atoms), self.ids("from", atoms, edges), self.ids("to", atoms, edges)
        d = at[to] - at[sources]
        r = (d.square().sum(1, keepdim=True) + 1e-2).sqrt()
        unit = d / r
        basis = (r * (torch.arange(1, waves + 1, device=at.device) * (math.pi / 4))).sin() / r
        s = F.embedding(kinds, self.p("kinds/w", 10, width))
        v = torch.zeros(atoms, 3, width, device=at.device)
        for i in range(2):
            name = f"layer{i}"
            by = self.mlp(name + "/message", s, F.silu, width, 3 * width)[sources] * self.linear(name + "/basis", basis, 3 * width)
            a, b, c = by.float().chunk(3, 1)
            s = s + torch.zeros_like(s).index_add(0, to, a)
            v = v + torch.zeros_like(v).index_add(0, to, v[sources] * b[:, None] + unit[:, :, None] * c[:, None])
            u, w = v @ self.p(name + "/u", width, width), v @ self.p(name + "/v", width, width)
            long = (w.square().sum(1) + 1e-4).sqrt()
            a, b, c = self.mlp(name + "/update", torch.cat([s, long], 1), F.silu, width, 3 * width).chunk(3, 1)
            s = s + a + b * (u * w).sum(1)
            v = v + u * c[:, None]
        return self.mlp("energy", s, F.silu, width, 1)

    def forward(self):
        with torch.enable_grad():
            at = self.floats("at", 256 * T, 3).detach().requires_grad_()
            each = self.energy(at)
            slope, = torch.autograd.grad(each.sum(), at, create_graph=True)
        return F.mse_loss(each.float(), self.floats("energies", 256 * T, 1)) + F.mse_loss(-slope.float(), self.floats("forces", 256 * T, 3))


class Sinkhorn(Named):
    def forward(self):
        n, points, few, epsilon = 2 * T, 256, math.log(256), 0.1
        x, y = (self.mlp("net", self.floats(name, n, points, 16), F.relu, 64, 32).float() for name in ("x", "y"))
        cost = x.square().sum(2)[:, :, None] + y.square().sum(2)[:, None] - 2 * (x @ y.mT).float()
        k = cost / -epsilon
        v = torch.zeros(n, points, device=x.device)
        for _ in range(20):
            u = -few - torch.logsumexp(k + v[:, None], 2)
            v = -few - torch.logsumexp(k + u[:, :, None], 1)
        plan = (u[:, :, None] + v[:, None] - cost / epsilon).exp()
        return (plan * cost).sum() / n


class ArcFace(Named):
    def forward(self):
        n, classes, margin = 32 * T, 100_000, 0.5
        def unit(x):
            return x * (x.square().sum(1, keepdim=True) + 1e-8).rsqrt()
        x = unit(self.mlp("net", self.floats("x", n, 256), F.relu, 256, 64))
        cos = (x @ unit(self.p("faces", classes, 64)).T).float().clamp(-1 + 1e-6, 1 - 1e-6)
        labels = self.ids("labels", classes, n)
        at = cos.gather(1, labels[:, None])
        wide = at * math.cos(margin) - (1 - at.square()).sqrt() * math.sin(margin)
        return F.cross_entropy(cos.scatter(1, labels[:, None], wide) * 30, labels)


class VICReg(Named):
    def forward(self):
        n, width = 256 * T, 512
        def view(name):
            x = self.floats(name, n, 256)
            for i in range(2):
                layer = f"layer{i}"
                x = F.relu(F.batch_norm(self.linear(layer, x, width), None, None, self.p(layer + "/scale", width), self.p(layer + "/shift/b", width), training=True))
            return self.linear("out", x, width).float()
        def loss(x):
            x = x - x.mean(0)
            c = (x.T @ x) / (n - 1)
            off = c.square().sum() - c.diagonal().square().sum()
            return 25 * F.relu(1 - (x.var(0) + 1e-4).sqrt()).mean() + off / width
        x, y = view("a"), view("b")
        return 25 * F.mse_loss(x, y) + loss(x) + loss(y)


class PPO(Named):
    def forward(self):
        steps, games = 128, 16 * T
        x = self.floats("x", steps + 1, games, 24)
        values = self.mlp("value", x, torch.tanh, 64, 64, 1)[..., 0].float()
        going = (self.ids("ends", 20, steps, games) != 0).float()
        fixed = values.detach()
        delta = self.floats("rewards", steps, games) + 0.99 * going * fixed[1:] - fixed[:-1]
        a, gains = torch.zeros(games, device=x.device), []
        for t in range(steps - 1, -1, -1):
            a = delta[t] + 0.99 * 0.95 * going[t] * a
            gains.append(a)
        gains = torch.stack(gains[::-1])
        logs = self.mlp("policy", x[:-1], torch.tanh, 64, 64, 6).float().log_softmax(2)
        ratio = (logs.gather(2, self.ids("action", 6, steps, games, 1))[..., 0] - self.floats("before", steps, games)).exp()
        unit = (gains - gains.mean()) / (gains.var(correction=0) + 1e-8).sqrt()
        policy = torch.minimum(ratio * unit, ratio.clamp(0.8, 1.2) * unit).mean()
        return 0.5 * F.mse_loss(values[:-1], gains + fixed[:-1]) - policy + 0.01 * (logs.exp() * logs).sum(2).mean()


class LRU(Named):
    def forward(self):
        length, width, states, n = 512, 64, 64, 4 * T
        x = self.linear("in", self.floats("x", n, length, 16), width)
        for i in range(2):
            name = f"layer{i}"
            h = self.norm(name + "/norm", x)
            size, angle = (-self.p(name + "/nu/b", states).exp()).exp(), self.p(name + "/theta/b", states).exp()
            by, gain = torch.polar(size, angle), (1 - size.square()).sqrt()
            s = torch.complex(*((self.matrix(f"{name}/b/{part}", h, states) * gain).float() for part in ("re", "im")))
            k = 1
            while k < length:  # a scan by doubling, as a loop over time takes longer
                s = torch.cat([s[:, :k], s[:, k:] + by * s[:, :-k]], 1)
                by, k = by * by, 2 * k
            y = self.matrix(name + "/c/re", s.real, width) - self.matrix(name + "/c/im", s.imag, width)
            x = x + F.glu(self.linear(name + "/out", F.gelu(y + h * self.p(name + "/d", width)), 2 * width), 2)
        return self.classify(x.mean(1), 10)


class RWKV(Named):
    def forward(self):
        length, heads, each, n = 128, 4, 32, 4 * T
        width = heads * each
        x = F.embedding(self.ids("ids", 1000, n, length), self.p("words", 1000, width))
        h = self.norm("norm", x)
        back = F.pad(h[:, :-1], (0, 0, 1, 0)) - h
        def read(name):
            return self.matrix(name + "/w", h + back * self.p(name + "/mix", width), width).view(n, length, heads, each).float()
        r, k, v, decay = read("r"), read("k"), read("v"), (-read("decay").exp()).exp()
        bonus, s, ys = self.p("bonus", 1, heads, each, 1), torch.zeros(n, heads, each, each, device=x.device), []
        for t in range(length):
            kv = k[:, t, :, :, None] * v[:, t, :, None]
            ys.append(((s + bonus * kv) * r[:, t, :, :, None]).sum(2))
            s = s * decay[:, t, :, :, None] + kv
        x = x + self.linear("out", self.norm("norm1", torch.stack(ys, 1).flatten(2)), width)
        return self.classify(x + self.linear("down", F.relu(self.linear("up", self.norm("norm2", x), 4 * width)).square(), width), 1000)


class XLSTM(Named):
    def forward(self):
        length, heads, each, n = 64, 4, 32, 8 * T
        width = heads * each
        x = F.embedding(self.ids("ids", 1000, length, n), self.p("words", 1000, width))
        gates = self.linear("gates", self.norm("norm", x), 4 * width).view(length, n, heads, 4 * each).float()
        w, ys = self.p("recurrent", heads, each, 4 * each), []
        h = c = total = top = torch.zeros(n, heads, each, device=x.device)
        for t in range(length):
            i, f, z, o = (gates[t] + torch.einsum("bhi,hio->bho", h, w)).chunk(4, 2)
            forget = F.logsigmoid(f) + top
            top = torch.maximum(forget, i)
            i, f = (i - top).exp(), (forget - top).exp()
            c, total = f * c + i * z.tanh(), f * total + i
            h = o.sigmoid() * c / total.clamp(min=1e-6)
            ys.append(h)
        y = F.layer_norm(torch.stack(ys), (each,)).flatten(2)
        return self.classify(x + self.linear("out", y, width), 1000)


class Triangle(Named):
    def gated(self, name, h, out):
        return self.linear(name + "/gate", h, out).sigmoid() * self.linear(name, h, out)

    def forward(self):
        side, width, heads = 48, 64, 4
        x = self.floats("x", T, side, side, width)
        for i, equation in enumerate(("bikc,bjkc->bijc", "bkic,bkjc->bijc")):
            name = f"multiply{i}"
            h = self.norm(name + "/norm", x)
            y = torch.einsum(equation, self.gated(name + "/left", h, width), self.gated(name + "/right", h, width))
            x = x + self.linear(name + "/gate", h, width).sigmoid() * self.linear(name + "/out", self.norm(name + "/norm1", y), width)
        for i in range(2):
            name = f"attend{i}"
            h = self.norm(name + "/norm", x)
            h = h.transpose(1, 2) if i else h
            q, k, v = (self.matrix(name + which, h, width).unflatten(3, (heads, -1)).transpose(2, 3) for which in ("/q", "/k", "/v"))
            bias = self.matrix(name + "/bias", h, heads).permute(0, 3, 1, 2)[:, None]
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype)).transpose(2, 3).flatten(3)
            y = self.linear(name + "/out", y * self.linear(name + "/gate", h, width).sigmoid(), width)
            x = x + (y.transpose(1, 2) if i else y)
        return self.classify(x + self.mlp("mlp", self.norm("norm", x), F.relu, 2 * width, width), 32)


def buckets(length, count, both):
    """The number of a bucket of each distance, as in T5."""
    def of(d):
        n, base = (count // 2, count // 2 * (d > 0)) if both else (count, 0)
        d = abs(d) if both else max(-d, 0)
        if d >= n // 2:
            d = min(int(n // 2 + math.log(d / (n // 2)) / math.log(128 / (n // 2)) * (n - n // 2)), n - 1)
        return base + d
    return torch.tensor([[of(j - i) for j in range(length)] for i in range(length)])


class T5(Named):
    def rms(self, name, x):
        return F.rms_norm(x, x.shape[-1:], self.p(name + "/scale", x.shape[-1]), 1e-6)

    def attend(self, name, x, memory, bias):
        q, k, v = (self.matrix(name + which, a, 128).unflatten(2, (4, -1)).transpose(1, 2) for which, a in (("/q", x), ("/k", memory), ("/v", memory)))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype), scale=1.0)
        return self.matrix(name + "/out", y.transpose(1, 2).flatten(2), 128)

    def bias(self, name, length, both):
        at = self.declared(name + "/at", lambda key: self.register_buffer(key, buckets(length, 32, both)))
        return F.embedding(at, self.p(name, 32, 4)).permute(2, 0, 1)[None]

    def feed(self, name, norm, x):
        return self.matrix(name + "/down", F.relu(self.matrix(name + "/up", self.rms(name + norm, x), 512)), 128)

    def forward(self):
        before, to, words, n = 96, 64, 2000, 4 * T
        table = self.p("tokens", words, 128)
        lengths = self.ids("lengths", before, n)
        at = torch.arange(before, device=lengths.device)
        pad = torch.where(at <= lengths[:, None, None, None], 0.0, -1e9)
        x = F.embedding(self.ids("ids", words, n, before), table)
        near = self.bias("encoder/bias", before, True) + pad
        for i in range(2):
            name = f"encoder{i}"
            h = self.rms(name + "/norm1", x)
            x = x + self.attend(name, h, h, near)
            x = x + self.feed(name, "/norm2", x)
        memory = self.rms("encoder/norm", x)
        y = F.embedding(self.ids("targets", words, n, to), table)
        near = self.bias("decoder/bias", to, False) + torch.full((to, to), -1e9, device=y.device).triu(1)
        for i in range(2):
            name = f"decoder{i}"
            h = self.rms(name + "/norm1", y)
            y = y + self.attend(name, h, h, near)
            y = y + self.attend(name + "/cross", self.rms(name + "/norm2", y), memory, pad)
            y = y + self.feed(name, "/norm3", y)
        logits = (self.rms("decoder/norm", y) * 128**-0.5) @ table.T
        return F.cross_entropy(logits.flatten(0, 1), self.ids("labels", words, n, to).flatten())


class Performer(Named):
    def forward(self):
        length, chunk, width, heads, features, n = 512, 64, 128, 4, 64, 2 * T
        each = width // heads
        x = F.embedding(self.ids("ids", 1000, n, length), self.p("words", 1000, width))
        project = self.floats("project", each, features)
        for i in range(2):
            name = f"block{i}"
            h = self.norm(name + "/norm1", x)
            def split(which):
                return self.linear(name + which, h, width).unflatten(2, (heads, each)).transpose(1, 2)
            def positive(x, axes):
                x = x.float() * each**-0.25
                y = x @ project - x.square().sum(3, keepdim=True) / 2
                return ((y - y.amax(axes, keepdim=True).detach()).exp() + 1e-4).unflatten(2, (-1, chunk))
            q, k, v = positive(split("/q"), 3), positive(split("/k"), (2, 3)), split("/v").unflatten(2, (-1, chunk))
            v = F.pad(v, (0, 1), value=1.0)
            states = k.mT @ v
            states = (states.cumsum(2) - states)
            y = q @ states + (q @ k.mT).tril() @ v
            y = (y[..., :-1] / y[..., -1:]).flatten(2, 3).transpose(1, 2).flatten(2)
            x = x + self.linear(name + "/out", y, width)
            x = x + self.mlp(name + "/mlp", self.norm(name + "/norm2", x), F.gelu, 4 * width, width)
        return self.classify(x, 1000)


class Longformer(Named):
    def forward(self):
        length, block, width, heads = 1024, 64, 128, 4
        x = F.embedding(self.ids("ids", 1000, T, length), self.p("words", 1000, width))
        device = x.device
        keys, queries = torch.arange(3 * block, device=device), torch.arange(block, device=device)[:, None]
        place = keys + block * torch.arange(length // block, device=device)[:, None, None]
        mask = (keys >= queries) & (keys <= queries + 2 * block) & (place >= block) & (place < length + block)
        for i in range(2):
            name = f"block{i}"
            h = self.norm(name + "/norm1", x)
            q, k, v = (self.linear(name + which, h, width).unflatten(2, (heads, -1)).transpose(1, 2) for which in ("/q", "/k", "/v"))
            k, v = (F.pad(a, (0, 0, block, block)).unfold(2, 3 * block, block).mT for a in (k, v))
            y = F.scaled_dot_product_attention(q.unflatten(2, (-1, block)), k, v, attn_mask=mask)
            x = x + self.linear(name + "/out", y.flatten(2, 3).transpose(1, 2).flatten(2), width)
            x = x + self.mlp(name + "/mlp", self.norm(name + "/norm2", x), F.gelu, 4 * width, width)
        return self.classify(x, 1000)


class RNNT(Named):
    def forward(self):
        frames, labels, width, classes, n = 64, 16, 128, 64, 4 * T
        sound = self.mlp("encoder", self.floats("x", n, frames, 80), F.relu, width, width)
        said = self.ids("labels", classes - 1, n, labels)
        text = F.pad(self.linear("predictor", F.embedding(said, self.p("words", classes, width)), width), (0, 0, 1, 0))
        logs = self.linear("joint", (sound[:, :, None] + text[:, None]).tanh(), classes).float().log_softmax(3)
        blank = logs[..., -1]
        emit = logs[:, :, :labels].gather(3, said[:, None, :, None].expand(-1, frames, -1, -1))[..., 0]
        before = F.pad(emit.cumsum(2), (1, 0))
        a = before[:, 0]
        for t in range(1, frames):
            a = before[:, t] + torch.logcumsumexp(a + blank[:, t - 1] - before[:, t], 1)
        return -(a[:, labels] + blank[:, -1, labels]).mean()


class Kalman(Named):
    def square(self, name, k):
        l = self.p(name, k, k)
        return l @ l.T + torch.eye(k, device=l.device) * 0.1

    def forward(self):
        steps, states, seen, n = 64, 8, 4, 16 * T
        x = self.linear("in", self.floats("x", steps, n, 16), seen).float()
        device = x.device
        with torch.autocast(device.type, enabled=False):
            move, watch = 0.8 * torch.eye(states, device=device) + 0.2 * self.p("move", states, states), self.p("watch", seen, states)
            q, r = self.square("q", states), self.square("r", seen)
            m, p, loss = torch.zeros(n, states, 1, device=device), torch.eye(states, device=device).expand(n, -1, -1), 0
            for t in range(steps):
                m, p = move @ m, move @ p @ move.T + q
                off, hp = x[t, :, :, None] - watch @ m, watch @ p
                l = torch.linalg.cholesky(hp @ watch.T + r)
                z, w = (torch.linalg.solve_triangular(l, a, upper=False) for a in (off, hp))
                m, p = m + w.mT @ z, p - w.mT @ w
                loss = loss + l.diagonal(dim1=1, dim2=2).log().sum(1) + 0.5 * z.square().sum((1, 2))
            return loss.mean() / steps


UNUSUAL = {
    "glow": Glow, "fourier operator": FourierOperator, "wgan gp": WGANGP, "raft": RAFT, "unet 3d": UNet3D, "deeplab": DeepLab,
    "pixel cnn": PixelCNN, "inception": Inception, "maml": MAML, "hash grid": HashGrid, "forces": Forces, "sinkhorn": Sinkhorn,
    "arcface": ArcFace, "vicreg": VICReg, "ppo": PPO, "lru": LRU, "rwkv": RWKV, "xlstm": XLSTM, "triangle": Triangle, "t5": T5,
    "performer": Performer, "longformer": Longformer, "rnnt": RNNT, "kalman": Kalman,
}

if __name__ == "__main__":
    serve({f"{how} {name}": functools.partial(job, name, how == "compile") for name in UNUSUAL for how in ("eager", "compile")})
