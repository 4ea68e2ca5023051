"""What MIL operations compute for which coremltools has no rule, or a wrong one, written with
NumPy by their documentation. conv and pools are sums over the positions of the window.

coremltools 9.0 passes over the mode of scatter_along_axis, and cannot compute a cumsum that
is exclusive.
"""

import numpy as np
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

counts = {}
_theirs = [0]


def theirs():
    """Returns how many operations coremltools computed by itself."""
    return _theirs[0]


def _windows(x, sizes, strides, dilations, pad, fill):
    """Yields x at each element of the window, for all positions of the window."""
    n = len(sizes)
    pairs = [(0, 0), (0, 0)] + [(pad[2 * i], pad[2 * i + 1]) for i in range(n)]
    x = np.pad(x, pairs, constant_values=fill)
    counts_ = [(x.shape[i + 2] - (sizes[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    for at in np.ndindex(*sizes):
        where = tuple(slice(at[i] * dilations[i], at[i] * dilations[i] + (counts_[i] - 1) * strides[i] + 1, strides[i]) for i in range(n))
        yield at, x[(slice(None), slice(None)) + where]


def _spatial(op, n):
    def ints(v, default):
        return [int(i) for i in v.val] if v is not None and v.val is not None else default

    pad = ints(op.pad, [0] * 2 * n) if op.pad_type.val == "custom" else [0] * 2 * n
    return ints(op.strides, [1] * n), pad, ints


def conv(op):
    x, w = op.x.val, op.weight.val
    strides, pad, ints = _spatial(op, w.ndim - 2)
    dilations, groups = ints(op.dilations, [1] * (w.ndim - 2)), int(op.groups.val)
    wide = np.float64 if x.dtype != np.float64 else x.dtype
    out = 0
    for at, part in _windows(x.astype(wide), w.shape[2:], strides, dilations, pad, 0):
        weights = w[(slice(None), slice(None)) + at].astype(wide)
        part = part.reshape((x.shape[0], groups, -1) + part.shape[2:])
        weights = weights.reshape((groups, -1) + weights.shape[1:])
        out = out + np.einsum("bgc...,goc->bgo...", part, weights)
    return out.reshape((x.shape[0], w.shape[0]) + out.shape[3:]).astype(x.dtype)


def max_pool(op):
    sizes = [int(i) for i in op.kernel_sizes.val]
    strides, pad, _ = _spatial(op, len(sizes))
    parts = [p for _, p in _windows(op.x.val, sizes, strides, [1] * len(sizes), pad, -np.inf)]
    return np.maximum.reduce(parts)


def avg_pool(op):
    sizes = [int(i) for i in op.kernel_sizes.val]
    strides, pad, _ = _spatial(op, len(sizes))
    x = op.x.val.astype(np.float64)
    ones = np.ones_like(x)
    fill = 0 if op.exclude_padding_from_average.val else 1
    total = sum(p for _, p in _windows(x, sizes, strides, [1] * len(sizes), pad, 0))
    count = sum(p for _, p in _windows(ones, sizes, strides, [1] * len(sizes), pad, fill))
    return (total / count).astype(op.x.val.dtype)


def scatter_along_axis(op):
    data, indices, updates, axis = op.data.val.copy(), op.indices.val, op.updates.val, int(op.axis.val)
    place = list(np.indices(indices.shape))
    place[axis] = indices
    if op.mode.val == "update":
        data[tuple(place)] = updates
        return data
    combine = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[op.mode.val]
    combine.at(data, tuple(place), updates)
    return data


def cumsum(op):
    x, axis = op.x.val, int(op.axis.val)
    if op.reverse.val:
        x = np.flip(x, axis)
    out = np.cumsum(x, axis, dtype=x.dtype)
    if op.exclusive.val:
        first = [slice(None)] * x.ndim
        first[axis] = slice(0, -1)
        out = np.concatenate([np.zeros_like(np.take(x, [0], axis)), out[tuple(first)]], axis)
    return np.flip(out, axis) if op.reverse.val else out


OURS = {"conv": conv, "max_pool": max_pool, "avg_pool": avg_pool, "scatter_along_axis": scatter_along_axis, "cumsum": cumsum}


# Weights that stay packed: coremltools unpacks them, but not while it loads.
UNPACK = "constexpr_blockwise_shift_scale"

VALUES = ("x", "weight", "data", "indices", "updates")


def install():
    """Gives the operations above a value, and counts who computes."""
    for kind, versions in SSAOpRegistry.core_ops.items():
        for cls in set(versions.values()):
            if kind == UNPACK:
                cls.value_inference = _counting(lambda self: self.materialized_val_inference())
            elif kind in OURS:
                cls.value_inference = _counted(kind, OURS[kind])
            elif "value_inference" in cls.__dict__ and kind != "const":
                cls.value_inference = _counting(cls.__dict__["value_inference"])


def _counted(kind, f):
    def value_inference(self):
        if any(self.inputs[i].val is None for i in VALUES if i in self.inputs):
            return None
        counts[kind] = counts.get(kind, 0) + 1
        return f(self)

    return value_inference


def _counting(f):
    def value_inference(self):
        value = f(self)
        _theirs[0] += value is not None
        return value

    return value_inference
