"""The jobs of BenchmarkLayers of package native/cpu, in PyTorch, from their names; as singles.py.

    PYTHON=python3 GOMAXPROCS=1 OMP_NUM_THREADS=1 go test -run='^$' -bench=Layers ./native/cpu
"""
import sys

from serve import serve

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("PyTorch is not installed")
    sys.exit(0)

from singles import dominant, svd

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
FACTORS = {
    "cholesky": torch.linalg.cholesky, "lu": torch.linalg.lu_factor, "solve": lambda x: torch.linalg.solve(x, x),
    "qr": torch.linalg.qr, "eigh": torch.linalg.eigh, "svd": svd, "inverse": torch.linalg.inv,
    "triangular": lambda x: torch.linalg.solve_triangular(x, x, upper=False), "eigenvalues": torch.linalg.eigvalsh,
}
LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def sizes(text):
    return [int(n) for n in text.split("x")]


def parse(name):
    words, job = name.split(), {"stride": 1, "dilated": 1, "groups": 1, "to": 0, "window": [], "gradient": False}
    job["dtype"] = TYPES.get(words[0], torch.float32)
    if words[0] in TYPES:
        words = words[1:]
    job["op"], words = words[0], words[1:]
    if words[0].startswith("n"):
        job["layout"], words = words[0], words[1:]
    job["sizes"], words = sizes(words[0]), words[1:]
    while words:
        if words[0] == "gradient":
            job["gradient"], words = True, words[1:]
            continue
        v = sizes(words[1])
        job[words[0]] = v if words[0] == "window" else v[0]
        words = words[2:]
    return job


def layer(j):
    space, stride, dilated, groups = len(j["window"]), j["stride"], j["dilated"], j["groups"]
    last = LAST.get(space) if not j["layout"].startswith("nc") else None
    place = (lambda t: t.to(memory_format=last)) if last else (lambda t: t)
    pad = [(w - 1) // 2 * dilated for w in j["window"]]
    x = place(torch.rand(*j["sizes"]).to(j["dtype"])).requires_grad_(j["gradient"])
    cin, out = j["sizes"][1], j["to"]
    if j["op"] == "conv":
        w = place(torch.rand(out, cin // groups, *j["window"]).to(j["dtype"])).requires_grad_(j["gradient"])
        conv = [F.conv1d, F.conv2d, F.conv3d][space - 1]
        return x, w, lambda: conv(x, w, None, stride, pad, dilated, groups)
    if j["op"] == "transposed":
        w = place(torch.rand(cin, out, *j["window"]).to(j["dtype"])).requires_grad_(j["gradient"])
        conv = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][space - 1]
        return x, w, lambda: conv(x, w, None, stride, pad)
    pool = {"max": [F.max_pool1d, F.max_pool2d, F.max_pool3d], "average": [F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]}[j["op"]][space - 1]
    return x, None, lambda: pool(x, j["window"], stride, pad)


def product(j):
    batch, m, n, k = j["sizes"]
    x, y = torch.rand(batch, m, k).to(j["dtype"]), torch.rand(batch, k, n).to(j["dtype"])
    if batch == 1:
        x, y = x[0], y[0]
    return lambda: x @ y


class Jobs:
    """Makes jobs from their names."""

    def get(self, name):
        j = parse(name)
        if j["op"] in FACTORS:
            return dominant(FACTORS[j["op"]], j["of"], j["sizes"][0], dtype=j["dtype"])
        if j["op"] == "product":
            return lambda: product(j)

        def job():
            x, w, f = layer(j)
            if not j["gradient"]:

                def run():
                    with torch.inference_mode():
                        f()

                return run

            def both():
                x.grad = None
                if w is not None:
                    w.grad = None
                f().square().sum().backward()

            return both

        return job


if __name__ == "__main__":
    serve(Jobs())
