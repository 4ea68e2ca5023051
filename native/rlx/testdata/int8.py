# Writes int8.onnx, a small CNN; int8.npz, rows of its input with its results; and prints how far onnxruntime's own static
# quantisation (QDQ, int8, by channels, calibrated by the rows) moves these, which the test has as a constant.
#
#   pip install onnx==1.23.2 onnxruntime==1.32.0
#   python int8.py

import pathlib
import tempfile

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper, save
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

folder = pathlib.Path(__file__).parent
random = np.random.default_rng(1)


def weight(name, *shape):
    """Weights whose output channels have different sizes."""
    sizes = random.uniform(0.3, 3, (shape[0],) + (1,) * (len(shape) - 1)) / np.sqrt(max(np.prod(shape[1:]), 1))
    return numpy_helper.from_array((random.standard_normal(shape) * sizes).astype("f4"), name)


node, info = helper.make_node, helper.make_tensor_value_info
nodes = [
    node("Conv", ["x", "conv1.weight", "conv1.bias"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]),
    node("Conv", ["b", "conv2.weight", "conv2.bias"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", ["c"], ["d"]),
    node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]), node("Flatten", ["e"], ["f"]),
    node("Gemm", ["f", "fc1.weight", "fc1.bias"], ["g"], transB=1), node("Relu", ["g"], ["h"]),
    node("MatMul", ["h", "fc2.weight"], ["y"]),
]
weights = [weight("conv1.weight", 4, 1, 3, 3), weight("conv1.bias", 4), weight("conv2.weight", 8, 4, 3, 3), weight("conv2.bias", 8),
           weight("fc1.weight", 12, 32), weight("fc1.bias", 12), weight("fc2.weight", 12, 5)]
graph = helper.make_graph(nodes, "cnn", [info("x", TensorProto.FLOAT, ["batch", 1, 8, 8])], [info("y", TensorProto.FLOAT, ["batch", 5])], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
checker.check_model(model)
name = str(folder / "int8.onnx")
save(model, name)
x = random.standard_normal((40, 1, 8, 8)).astype("f4")
y = onnxruntime.InferenceSession(name).run(None, {"x": x})[0]
np.savez(folder / "int8.npz", x=x, y=y)


class Rows(CalibrationDataReader):
    rows = iter([{"x": x}])

    def get_next(self):
        return next(self.rows, None)


with tempfile.TemporaryDirectory() as scratch:
    to = scratch + "/int8.onnx"
    quantize_static(name, to, Rows(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8, weight_type=QuantType.QInt8)
    rounded = onnxruntime.InferenceSession(to).run(None, {"x": x})[0]
print(np.sqrt(((rounded - y) ** 2).mean()), np.sqrt((y ** 2).mean()))
