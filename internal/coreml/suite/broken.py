"""Breaks a package in the ways that coremltools' reader refuses, so that the reader itself is
seen to refuse, and for package mil of the project to refuse the same files."""

import os
import shutil

from coremltools.converters.mil.frontend.milproto import load as milproto
from coremltools.proto import MIL_pb2, Model_pb2

MODEL = os.path.join("Data", "com.apple.CoreML", "model.mlmodel")
WEIGHTS = os.path.join("Data", "com.apple.CoreML", "weights")


class Block:
    """The operations of the model's only function."""

    def __init__(self, model):
        function = model.mlProgram.functions["main"]
        self.operations = function.block_specializations[function.opset].operations

    def op(self, kind):
        return next(o for o in self.operations if o.type == kind)

    def constant(self, kind, parameter):
        """Returns the value of the constant that is a parameter of an operation."""
        name = self.op(kind).inputs[parameter].arguments[0].name
        return next(o for o in self.operations if o.outputs[0].name == name).attributes["val"]


def _sizes(b):
    b.op("matmul").outputs[0].type.tensorType.dimensions[1].constant.size = 7


def _type(b):
    b.op("matmul").outputs[0].type.tensorType.dataType = MIL_pb2.FLOAT16


def _operation(b):
    b.op("gelu").type = "gelluu"


def _name(b):
    b.op("gelu").inputs["x"].arguments[0].name = "nope"


def _parameter(b):
    b.op("gelu").inputs["foo"].CopyFrom(b.op("gelu").inputs["x"])


def _missing(b):
    del b.op("matmul").inputs["x"]


def _reshape(b):
    b.constant("reshape", "shape").immediateValue.tensor.ints.values[:] = [3, 5]


def _weights(b):
    b.constant("matmul", "y").blobFileValue.offset += 8


def _word(b):
    b.constant("gelu", "mode").immediateValue.tensor.strings.values[:] = ["BOGUS"]


KINDS = {
    "wrong_sizes": _sizes,
    "wrong_type": _type,
    "unknown_operation": _operation,
    "undefined_name": _name,
    "unknown_parameter": _parameter,
    "missing_parameter": _missing,
    "impossible_reshape": _reshape,
    "misplaced_weights": _weights,
    "unknown_word": _word,
}


def _refused(path):
    with open(os.path.join(path, MODEL), "rb") as f:
        model = Model_pb2.Model.FromString(f.read())
    try:
        milproto.load(model, specification_version=model.specificationVersion, file_weights_dir=os.path.join(path, WEIGHTS))
    except Exception as e:
        return "%s: %s" % (type(e).__name__, e)
    return None


def check(directory):
    """Yields what is wrong: a broken package that is not refused, or the whole one that is."""
    whole = os.path.join(directory, "broken", "whole.mlpackage")
    why = _refused(whole)
    if why:
        yield "broken: the whole package is refused: " + why
    for name, damage in KINDS.items():
        path = os.path.join(directory, "broken", name + ".mlpackage")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        with open(os.path.join(path, MODEL), "rb") as f:
            model = Model_pb2.Model.FromString(f.read())
        damage(Block(model))
        with open(os.path.join(path, MODEL), "wb") as f:
            f.write(model.SerializeToString())
        if not _refused(path):
            yield "broken: coremltools takes " + name
