"""Holds models to coremltools, Apple's own reader and its definitions of MIL.

    check.py DIRECTORY [name...]

Of every package of the directory, written by the command beside this file, each
function is read by coremltools' milproto, which infers the type of every result and
compares it with the declared one. Then the inputs are made constants, so that
coremltools computes values; where it has no rule for an operation, numerics.py
beside this file computes it with NumPy, and the report says for how many. The
outputs are compared with the expected ones within their tolerances. Last, broken.py breaks a
package in several ways, which coremltools must refuse.
"""

import base64
import json
import logging
import os
import sys
import time
import warnings

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402

np.seterr(all="ignore")

from coremltools.converters.mil.frontend.milproto import load as milproto  # noqa: E402
from coremltools.proto import MIL_pb2, Model_pb2  # noqa: E402

import broken  # noqa: E402
import numerics  # noqa: E402

FLOAT16, FLOAT32, INT32 = MIL_pb2.FLOAT16, MIL_pb2.FLOAT32, MIL_pb2.INT32


def model_of(path):
    """Returns the model of a package, by its manifest, and its folder of weights."""
    with open(os.path.join(path, "Manifest.json")) as f:
        manifest = json.load(f)
    items = {item["name"]: os.path.join(path, "Data", item["path"]) for item in manifest["itemInfoEntries"].values()}
    model = Model_pb2.Model()
    with open(items["model.mlmodel"], "rb") as f:
        model.ParseFromString(f.read())
    return model, items["weights"]


def expected(entry):
    data = np.frombuffer(base64.b64decode(entry["data"]), np.float64)
    return data.reshape(entry["dims"])


def as_constant(named, value):
    """Returns a const operation in the place of an input or of the read of a state."""
    op = MIL_pb2.Operation(type="const")
    op.outputs.add().CopyFrom(named)
    op.attributes["name"].type.tensorType.dataType = MIL_pb2.STRING
    op.attributes["name"].immediateValue.tensor.strings.values.append(named.name)
    val = op.attributes["val"]
    val.type.CopyFrom(named.type)
    kind = named.type.tensorType.dataType
    flat = value.reshape(-1)
    if kind == FLOAT32:
        val.immediateValue.tensor.floats.values.extend(flat.astype(np.float32).tolist())
    elif kind == INT32:
        val.immediateValue.tensor.ints.values.extend(flat.astype(np.int32).tolist())
    elif kind == FLOAT16:
        val.immediateValue.tensor.bytes.values = flat.astype(np.float16).tobytes()
    else:
        raise ValueError("input of type %d" % kind)
    return op


def frozen(model, name, inputs):
    """Returns a model of one function whose inputs are constants, and the names of the values
    that are written to its states."""
    out = Model_pb2.Model(specificationVersion=model.specificationVersion)
    program = out.mlProgram
    program.version = model.mlProgram.version
    function = program.functions["main"]
    function.CopyFrom(model.mlProgram.functions[name])
    block = function.block_specializations[function.opset]
    ops = [as_constant(i, inputs[i.name]) for i in function.inputs if i.type.WhichOneof("type") == "tensorType"]
    written = {}
    for op in block.operations:
        if op.type == "read_state":
            op = as_constant(op.outputs[0], inputs[op.inputs["input"].arguments[0].name])
        elif op.type == "write_state":
            written[op.inputs["input"].arguments[0].name] = op.inputs["data"].arguments[0].name
            continue
        ops.append(op)
    del block.operations[:]
    block.operations.extend(ops)
    block.outputs.extend(written.values())
    del function.inputs[:]
    return out, written


def differs(got, entry):
    want = expected(entry)
    got = np.asarray(got, np.float64)
    if got.shape != want.shape:
        return "its sizes are %s, not %s" % (got.shape, want.shape)
    off = np.abs(got - want)
    good = (off <= entry["abs"] + entry["rel"] * np.abs(want)) | (got == want) | (np.isnan(got) & np.isnan(want))
    if good.all():
        return None
    at = np.argwhere(~good)[0]
    return "element %s is %r, not %r; %d of %d differ" % (list(map(int, at)), got[tuple(at)], want[tuple(at)], (~good).sum(), good.size)


def check(directory, name):
    """Yields what is wrong with a package, and returns how many functions it has."""
    path = os.path.join(directory, name)
    model, weights = model_of(path + ".mlpackage")
    with open(path + ".json") as f:
        cases = json.load(f)
    if sorted(cases) != sorted(model.mlProgram.functions):
        yield "%s: functions %s" % (name, sorted(model.mlProgram.functions))
    try:
        milproto.load(model, specification_version=model.specificationVersion, file_weights_dir=weights)
    except Exception as e:
        yield "%s: refused: %s: %s" % (name, type(e).__name__, str(e)[:300])
        return
    for function, case in cases.items():
        inputs = {k: expected(v) for k, v in case["inputs"].items()}
        for number, step in enumerate(case.get("steps", [case])):
            inputs.update((k, expected(v)) for k, v in step["inputs"].items())
            try:
                one, written = frozen(model, function, inputs)
                program = milproto.load(one, specification_version=one.specificationVersion, file_weights_dir=weights)
                values = {v.name: v.val for v in program.functions["main"].outputs}
            except Exception as e:
                yield "%s %s: not computed: %s: %s" % (name, function, type(e).__name__, str(e)[:300])
                break
            for feature, entry in step["outputs"].items():
                got = values.get(written.get(feature, feature))
                if got is None:
                    yield "%s %s %s: has no value" % (name, function, feature)
                    continue
                wrong = differs(got, entry)
                if wrong:
                    yield "%s %s %s, run %d: %s" % (name, function, feature, number, wrong)
            inputs.update((k, np.asarray(values[output])) for output, k in case.get("next", {}).items())


def main():
    directory = sys.argv[1]
    names = sys.argv[2:] or sorted(f[: -len(".json")] for f in os.listdir(directory) if f.endswith(".json"))
    numerics.install()
    begin, wrong, functions, slow = time.process_time(), [], 0, []
    for name in names:
        t = time.process_time()
        wrong += check(directory, name)
        slow.append((time.process_time() - t, name))
        with open(os.path.join(directory, name + ".json")) as f:
            functions += len(json.load(f))
    taken = list(broken.check(directory))
    wrong += taken
    for line in wrong:
        print(line)
    slow.sort(reverse=True)
    print("%d packages, %d functions, %d faults, %.0f s of CPU (most: %s)" % (
        len(names), functions, len(wrong), time.process_time() - begin, ", ".join("%s %.1f" % (n, t) for t, n in slow[:3])))
    print("typed by coremltools: every operation; computed by it: %d; by NumPy beside it: %s" % (
        numerics.theirs(), ", ".join("%s %d" % kv for kv in sorted(numerics.counts.items())) or "none"))
    print("a package broken in %d ways: %d faults" % (len(broken.KINDS), len(taken)))
    if not names:
        wrong = ["there is nothing to check"]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
