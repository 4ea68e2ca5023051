"""Writes real models with the results of onnxruntime, in the layout of cases.py.

python real.py FOLDER takes the models of the packages of models.txt, and those of older operator sets that
the onnx package has, with its results.
"""

import importlib.util
import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

random = numpy.random.default_rng(1)


def noise(*shape):
    return random.standard_normal(shape).astype("f4") * numpy.float32(0.1)


def image(h, w):
    return random.uniform(-1, 1, (1, 3, h, w)).astype("f4")


def voice(n, context=0, rows=1, rate=16000):
    return {"input": noise(rows, n + context), "state": noise(2, rows, 128), "sr": numpy.array(rate, "i8")}


# A chunk of one voice and of several, and those of the half rate, for which the models that have it branch.
VOICES = [voice(512, 64), voice(512, 64, rows=3), voice(256, 32, rate=8000), voice(256, 32, rows=2, rate=8000)]


MODELS = {
    "magika": ("magika/models/standard_v3_3/model.onnx", [
        {"bytes": random.integers(0, 257, (n, 2048)).astype("i4")} for n in (1, 3)]),
    "silero": ("silero_vad/data/silero_vad.onnx", VOICES),
    "silero_16k_op15": ("silero_vad/data/silero_vad_16k_op15.onnx", VOICES[:2]),
    "silero_half": ("silero_vad/data/silero_vad_half.onnx", VOICES[:2]),
    "silero_op18_ifless": ("silero_vad/data/silero_vad_op18_ifless.onnx", VOICES),
    "silero_openvino_16k": ("silero_vad/data/silero_vad_openvino_16k.onnx", VOICES[:1]),
    "silero_16k_sequence": ("silero_vad/data/silero_vad_16k_sequence.onnx", [
        {"input": noise(n, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)} for n in (1, 5)]),
    "rapidocr_cls": ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", [{"x": image(48, 192)}, {"x": numpy.concatenate([image(48, 192) for _ in range(3)])}, {"x": image(48, 96)}]),
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


def older(folder):
    """Copies the models of older operator sets that the onnx package has, but those that no graph has."""
    root = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for model in sorted(root.glob("[ps]*/*/model.onnx")):
        nodes = onnx.load(model).graph.node
        below7 = any(a.name == "broadcast" for n in nodes for a in n.attribute) or any(n.op_type == "PRelu" for n in nodes)
        if below7 or any(n.op_type in ("StringNormalizer", "Gradient") or n.op_type.startswith("Sequence") for n in nodes):
            continue
        at = folder / f"onnx_{model.parent.name}"
        (at / "0").mkdir(parents=True, exist_ok=True)
        (at / "model.onnx").write_bytes(model.read_bytes())
        (at / "tolerance").write_text("1e-3 1e-7\n")
        for file in (model.parent / "test_data_set_0").iterdir():
            (at / "0" / file.name).write_bytes(file.read_bytes())


def weights_alone(folder):
    """Writes Silero's seventh form, weights of another training without a graph, with the results of its graph that has them."""
    root = root_of("silero_vad") / "data"
    data = (root / "silero_vad_16k.safetensors").read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = json.loads(data[8:begin])
    scopes = {"stft_conv.weight": "model.stft.forward_basis_buffer", "lstm_cell": "model.decoder.rnn", "final_conv": "model.decoder.decoder.2",
              **{f"conv{i + 1}": f"model.encoder.{i}.reparam_conv" for i in range(4)}}
    model = onnx.load(root / "silero_vad_16k_op15.onnx")
    places = {t.name: t for t in model.graph.initializer}
    for name, info in tensors.items():
        scope = name if name in scopes else name.split(".")[0]
        from_, to = info["data_offsets"]
        values = numpy.frombuffer(data[begin + from_:begin + to], "f4").reshape(info["shape"])
        place = places[scopes[scope] + name[len(scope):]]
        assert list(place.dims) == info["shape"]
        place.CopyFrom(numpy_helper.from_array(values, place.name))
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / "whole.onnx")
    write(folder, folder / "whole.onnx", voice(512, 64))
    (folder / "whole.onnx").unlink()
    (folder / "weights.safetensors").write_bytes(data)


def root_of(package):
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def main(folder):
    older(folder)
    for name, (path, inputs) in MODELS.items():
        package, rest = path.split("/", 1)
        root = root_of(package)
        for i, feeds in enumerate(inputs):
            write(folder / f"{name}_{i}", root / rest, feeds)
    weights_alone(folder / "silero_safetensors_0")


main(pathlib.Path(sys.argv[1]))
