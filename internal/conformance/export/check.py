"""Reads the models that `go run ./internal/conformance/export FOLDER` writes: onnx.checker with strict
shape inference accepts each, and onnxruntime computes the expected results.

python check.py FOLDER [TABLE] writes what failed or was refused to a Markdown table, and the hashes of the
networks and models that agree to accepted.txt beside this file, by which main_test.go knows them.
"""

import collections
import hashlib
import json
import pathlib
import sys

import numpy
import onnx
import onnxruntime

TYPES = {
    "f32": "<f4", "f64": "<f8", "f16": "<f2", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8",
    "u8": "u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "bool": "?",
}


def tensor(values, t):
    dtype = numpy.dtype(TYPES[t["dtype"]])
    count = int(numpy.prod(t["shape"], dtype=numpy.int64))
    return numpy.frombuffer(values, dtype, count, t["at"]).reshape(t["shape"])


def differs(got, want, t):
    """Returns how a result differs from the expected one, or None."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} in place of {want.dtype}{list(want.shape)}"
    if want.dtype.kind in "iub":
        return None if (got == want).all() else f"{(got != want).sum()} of {got.size} numbers differ"
    g, w = got.astype(numpy.float64), want.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        bad = ~((numpy.abs(g - w) <= t.get("abs", 0) + t.get("rel", 0) * numpy.abs(w)) | (g == w) | (numpy.isnan(g) & numpy.isnan(w)))
    if not bad.any():
        return None
    at = numpy.unravel_index(bad.argmax(), bad.shape)
    return f"{bad.sum()} of {got.size} numbers differ: {g[at]:.7g} in place of {w[at]:.7g}"


def run(folder, values, case):
    path = str(folder / case["model"])
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as e:  # the checker raises several kinds
        return "checker: " + str(e).strip().splitlines()[0]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        taken = {i.name for i in session.get_inputs()}
        inputs = {t["name"]: tensor(values, t) for t in case.get("inputs", []) if t["name"] in taken}
        results = session.run([t["name"] for t in case["want"]], inputs)
    except Exception as e:  # so does the runtime
        return "onnxruntime: " + str(e).strip().splitlines()[0]
    for got, t in zip(results, case["want"]):
        if text := differs(got, tensor(values, t), t):
            return f"values: {text}"
    return None


def main(folder, table=None):
    folder = pathlib.Path(folder)
    values = (folder / "values.bin").read_bytes()
    cases = json.loads((folder / "index.json").read_text())
    counts, failed = collections.defaultdict(lambda: [0, 0, 0]), collections.defaultdict(list)
    accepted = []
    for case in cases:
        row = counts[case["kind"]]
        text = case.get("refused")
        if text is not None:
            row[2] += 1
        elif (text := run(folder, values, case)) is not None:
            row[1] += 1
        else:
            row[0] += 1
            if case["kind"] in ("network", "model"):
                accepted.append(hashlib.sha256((folder / case["model"]).read_bytes()).hexdigest() + " " + case["name"])
        if text is not None:
            failed[case["name"], ("refused: " if "refused" in case else "") + text.replace("|", "\\|")[:160]].append(case["sample"])
    lines = [
        "<!-- Written by internal/conformance/export/check.py. DO NOT EDIT. -->", "",
        "# Exported models", "",
        f"`onnx.Export` of every sample of every op, of random graphs of ops and of the families of models, checked by onnx {onnx.__version__}",
        f"and computed by onnxruntime {onnxruntime.__version__} on the CPU, against the reference implementation.", "",
        "| graphs | agree | fail | refused |", "|---|---|---|---|",
    ]
    lines += [f"| {kind} | {a} | {b} | {c} |" for kind, (a, b, c) in counts.items()]
    lines += ["", "| op or model | samples | what |", "|---|---|---|"]
    for (name, text), samples in failed.items():
        some = ", ".join(s or "–" for s in samples[:3]) + (f" and {len(samples) - 3} more" if len(samples) > 3 else "")
        lines.append(f"| `{name}` | {some} | {text} |")
    out = "\n".join(lines) + "\n"
    if table:
        pathlib.Path(table).write_text(out)
        pathlib.Path(__file__).with_name("accepted.txt").write_text("\n".join(accepted) + "\n")
    print("\n".join(lines[6:8 + len(counts) + 2]))
    print(f"{len(failed)} rows of failures and refusals")


if __name__ == "__main__":
    main(*sys.argv[1:])
