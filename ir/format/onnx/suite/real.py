"""Writes real models with the results of onnxruntime, in the layout of cases.py.

python real.py FOLDER takes the models of the packages of requirements.txt.
"""

import importlib.util
import pathlib
import sys

import numpy
import onnxruntime
from onnx import numpy_helper

random = numpy.random.default_rng(1)


def noise(*shape):
    return random.standard_normal(shape).astype("f4") * numpy.float32(0.1)


def image(h, w):
    return random.uniform(-1, 1, (1, 3, h, w)).astype("f4")


def voice(n, context=0):
    return {"input": noise(1, n + context), "state": noise(2, 1, 128), "sr": numpy.array(16000, "i8")}


MODELS = {
    "magika": ("magika/models/standard_v3_3/model.onnx", [
        {"bytes": random.integers(0, 257, (n, 2048)).astype("i4")} for n in (1, 3)]),
    "silero": ("silero_vad/data/silero_vad.onnx", [voice(512, 64)]),
    "silero_16k_op15": ("silero_vad/data/silero_vad_16k_op15.onnx", [voice(512, 64)]),
    "silero_half": ("silero_vad/data/silero_vad_half.onnx", [voice(512, 64)]),
    "silero_op18_ifless": ("silero_vad/data/silero_vad_op18_ifless.onnx", [voice(512, 64)]),
    "silero_openvino_16k": ("silero_vad/data/silero_vad_openvino_16k.onnx", [voice(512, 64)]),
    "silero_16k_sequence": ("silero_vad/data/silero_vad_16k_sequence.onnx", [
        {"input": noise(n, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)} for n in (1, 5)]),
    "rapidocr_cls": ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", [{"x": image(48, 192)}]),
    "rapidocr_det": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", [{"x": image(64, 96)}, {"x": image(128, 64)}]),
    "rapidocr_rec": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", [{"x": image(48, 160)}, {"x": image(48, 320)}]),
}


def write(folder, path, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    outputs = session.run(None, {name: feeds[name] for name in names})
    (folder / "0").mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(path.read_bytes())
    (folder / "tolerance").write_text("1e-4 1e-4\n")
    for prefix, values in (("input", [feeds[name] for name in names]), ("output", outputs)):
        for i, value in enumerate(values):
            tensor = numpy_helper.from_array(numpy.asarray(value))
            (folder / "0" / f"{prefix}_{i}.pb").write_bytes(tensor.SerializeToString())


def main(folder):
    for name, (path, inputs) in MODELS.items():
        package, rest = path.split("/", 1)
        root = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])
        for i, feeds in enumerate(inputs):
            write(folder / f"{name}_{i}", root / rest, feeds)


main(pathlib.Path(sys.argv[1]))
