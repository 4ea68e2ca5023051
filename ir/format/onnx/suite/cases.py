"""Writes the node tests of the onnx package as files.

python cases.py FOLDER writes FOLDER/NAME/ for each test: model.onnx; for each data set I and value J
I/input_J.pb and I/output_J.pb, a TensorProto, or .other where the value is no tensor; and
tolerance, the relative and the absolute tolerance.
"""

import pathlib
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test import loader


def write(folder, prefix, values, infos):
    for i, (value, info) in enumerate(zip(values, infos)):
        path = folder / f"{prefix}_{i}"
        if isinstance(value, onnx.TensorProto):
            path.with_suffix(".pb").write_bytes(value.SerializeToString())
        elif info.type.WhichOneof("value") == "tensor_type":
            tensor = numpy_helper.from_array(numpy.asarray(value), info.name)
            path.with_suffix(".pb").write_bytes(tensor.SerializeToString())
        else:
            path.with_suffix(".other").write_bytes(b"")


def main(folder):
    warnings.simplefilter("ignore")
    numpy.random.seed(0)
    for case in loader.load_model_tests(kind="node"):
        at = folder / case.name
        at.mkdir(parents=True, exist_ok=True)
        (at / "model.onnx").write_bytes(case.model.SerializeToString())
        (at / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
        for i, (inputs, outputs) in enumerate(case.data_sets):
            data = at / str(i)
            data.mkdir(exist_ok=True)
            write(data, "input", inputs, case.model.graph.input)
            write(data, "output", outputs, case.model.graph.output)


main(pathlib.Path(sys.argv[1]))
