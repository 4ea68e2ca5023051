"""The jobs of BenchmarkTable of package native/cpu, in JAX on the CPU: as
pytorch.py has them, with the same protocol.
"""
import os
import sys

from serve import serve

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
    import jax.numpy as jnp
    from jax import nn, random
except ImportError:
    print("JAX is not installed")
    sys.exit(0)


def normal(*dims):
    return random.normal(random.key(sum(dims)), dims)


def mlp(params, x):
    for i, (w, b) in enumerate(params):
        x = (nn.relu(x) if i else x) @ w + b
    return x


def layers(*sizes):
    return [(normal(m, n) / m**0.5, jnp.zeros(n)) for m, n in zip(sizes, sizes[1:])]


def compiled(f, *args):
    """Calls f and waits for what it returns."""
    f = jax.jit(f)
    return lambda: jax.block_until_ready(f(*args))


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(nn.log_softmax(logits), labels[..., None], -1).mean()


def adam(loss, params, decay=0.0):
    """One step of Adam, with the states in place of the old ones."""

    def update(state):
        params, m, v, t = state
        value, grad = jax.value_and_grad(loss)(params)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grad)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grad)
        scale = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        params = jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8) - 1e-3 * decay * p, params, m, v)
        return (params, m, v, t), value

    update = jax.jit(update, donate_argnums=0)
    params = jax.tree.map(jnp.array, params)
    state = [(params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.zeros(()))]

    def run():
        state[0], value = update(state[0])
        jax.block_until_ready((state[0], value))

    return run


def step(batch, *sizes):
    x, labels = normal(batch, sizes[0]), jnp.arange(batch) % sizes[-1]
    return adam(lambda p: cross_entropy(mlp(p, x), labels), layers(*sizes))


def conv(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)))


def convolution(backward):
    x, w = normal(32, 32, 28, 28), normal(64, 32, 3, 3)
    if backward:
        return compiled(jax.value_and_grad(lambda x, w: (conv(x, w) ** 2).sum(), (0, 1)), x, w)
    return compiled(conv, x, w)


def norm(x, scale, bias):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * scale + bias


def block(p, x, heads):
    batch, length, width = x.shape
    linear = lambda name, x: x @ p[name][0] + p[name][1]
    h = norm(x, *p["norm1"])
    q, k, v = (linear(n, h).reshape(batch, length, heads, -1) for n in "qkv")
    y = nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    x = x + linear("out", y)
    return x + linear("down", nn.gelu(linear("up", norm(x, *p["norm2"])), approximate=False))


def block_params(width):
    p = {n: layers(width, width)[0] for n in ("q", "k", "v", "out")}
    p["up"], p["down"] = layers(width, 4 * width)[0], layers(4 * width, width)[0]
    p["norm1"] = p["norm2"] = (jnp.ones(width), jnp.zeros(width))
    return p


def transformer(batch, length, width, heads):
    loss = lambda p, x: (block(p, x, heads) ** 2).mean()
    return compiled(jax.value_and_grad(loss, (0, 1)), block_params(width), normal(batch, length, width))


def gpt(width):
    ids = jnp.arange(8 * 64).reshape(8, 64) * 7 % 65
    params = {
        "tokens": normal(65, width), "positions": normal(64, width), "blocks": [block_params(width) for _ in range(2)],
        "norm": (jnp.ones(width), jnp.zeros(width)), "head": layers(width, 65)[0],
    }

    def loss(p):
        x = p["tokens"][ids] + p["positions"]
        for b in p["blocks"]:
            x = block(b, x, 4)
        return cross_entropy(norm(x, *p["norm"]) @ p["head"][0] + p["head"][1], ids)

    return adam(loss, params, decay=0.01)


MATRIX = (4096, 1024)

JOBS = {
    "MLP 784-128-10 step": lambda: step(128, 784, 128, 10),
    "MLP 784-512-512-10 step": lambda: step(128, 784, 512, 512, 10),
    "inference 784-128-10 batch 1": lambda: compiled(mlp, layers(784, 128, 10), normal(1, 784)),
    "inference 784-512-512-10 batch 1": lambda: compiled(mlp, layers(784, 512, 512, 10), normal(1, 784)),
    "inference 784-128-10 batch 128": lambda: compiled(mlp, layers(784, 128, 10), normal(128, 784)),
    "inference 784-512-512-10 batch 128": lambda: compiled(mlp, layers(784, 512, 512, 10), normal(128, 784)),
    "matmul 512": lambda: compiled(jnp.matmul, normal(512, 512), normal(512, 512)),
    "matmul 1024": lambda: compiled(jnp.matmul, normal(1024, 1024), normal(1024, 1024)),
    "softmax 4096x1024": lambda: compiled(nn.softmax, normal(*MATRIX)),
    "layer norm 4096x1024": lambda: compiled(norm, normal(*MATRIX), jnp.ones(1024), jnp.zeros(1024)),
    "gelu erf 4M": lambda: compiled(lambda x: nn.gelu(x, approximate=False), normal(4 << 20)),
    "gelu tanh 4M": lambda: compiled(nn.gelu, normal(4 << 20)),
    "sum along rows": lambda: compiled(lambda x: x.sum(1), normal(*MATRIX)),
    "sum along columns": lambda: compiled(lambda x: x.sum(0), normal(*MATRIX)),
    "transpose 2048x2048": lambda: compiled(lambda x: x.T, normal(2048, 2048)),
    "dropout 4M": lambda: compiled(lambda x, key: x * random.bernoulli(key, 0.9, x.shape) / 0.9, normal(4 << 20), random.key(1)),
    "conv 3x3 32-64 forward": lambda: convolution(False),
    "conv 3x3 32-64 backward": lambda: convolution(True),
    "GPT step width 64": lambda: gpt(64),
    "GPT step width 256": lambda: gpt(256),
    "transformer block": lambda: transformer(4, 128, 256, 8),
}


serve(JOBS)
