"""Writes models.json: losses and gradients of two small models, by JAX.

Run with JAX installed: python models.py > models.json
"""
import json

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def wave(seed, *shape):
    n = int(np.prod(shape))
    return jnp.asarray(np.sin(seed + 0.7 * np.arange(n)) * 0.8).reshape(shape)


def cross_entropy(logits, labels):
    p = jax.nn.log_softmax(logits)
    return -jnp.mean(p[jnp.arange(len(labels)), labels])


def mlp(p, x, labels):
    h = jnp.tanh(x @ p["w1"] + p["b1"])
    h = jax.nn.gelu(h @ p["w2"] + p["b2"], approximate=False)
    h = jax.nn.relu(h @ p["w3"] + p["b3"])
    return cross_entropy(h @ p["w4"], labels)


def cnn(p, x, labels):
    dims = ("NHWC", "HWIO", "NHWC")
    h = jax.lax.conv_general_dilated(x, p["c1"], (1, 1), ((1, 1), (1, 1)), dimension_numbers=dims) + p["a1"]
    h = jax.nn.relu(h)
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = jax.lax.conv_general_dilated(h, p["c2"], (2, 1), ((0, 1), (0, 0)), dimension_numbers=dims)
    h = jax.nn.silu(h)
    h = jnp.mean(h, axis=(1, 2))
    return cross_entropy(h @ p["w"] + p["b"], labels)


def case(f, params, x, labels):
    loss, grads = jax.value_and_grad(f)(params, x, labels)
    direction = {k: wave(i, *v.shape) for i, (k, v) in enumerate(sorted(params.items()))}
    hvp = jax.jvp(lambda p: jax.grad(f)(p, x, labels), (params,), (direction,))[1]
    flat = lambda t: {k: np.asarray(v).flatten().tolist() for k, v in t.items()}
    return {"loss": float(loss), "grads": flat(grads), "hvp": flat(hvp)}


labels = jnp.asarray([2, 0, 1, 2])
print(json.dumps({
    "mlp": case(mlp, {
        "w1": wave(1, 5, 6), "b1": wave(2, 6), "w2": wave(3, 6, 4), "b2": wave(4, 4),
        "w3": wave(5, 4, 5), "b3": wave(6, 5), "w4": wave(7, 5, 3),
    }, wave(8, 4, 5), labels),
    "cnn": case(cnn, {
        "c1": wave(1, 3, 3, 2, 3), "a1": wave(2, 3), "c2": wave(3, 2, 2, 3, 4), "w": wave(4, 4, 3), "b": wave(5, 3),
    }, wave(6, 4, 6, 6, 2), labels),
}))
