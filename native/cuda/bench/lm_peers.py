"""The prompt and the tokens of BenchmarkLanguageModels in PyTorch: a Llama of 8 billion random weights in bf16.

Prints a line a job: name, peer, milliseconds, tokens/s. Each block is compiled once, and runs with scaled_dot_product_attention.
"""
import sys
import time

import torch
import torch.nn.functional as F

WIDTH, HIDDEN, LAYERS, HEADS, KV, SIZE, VOCABULARY, ROOM = 4096, 14336, 32, 32, 8, 128, 128256, 4096
PROMPT, PAST = 2048, 1024


def weights(*dims):
    return torch.randn(*dims, device="cuda", dtype=torch.bfloat16) * 0.02


def norm(x, w):
    return F.rms_norm(x, (WIDTH,), w, 1e-5)


def rotated(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def block(x, w, k_cache, v_cache, past, cos, sin, causal):
    y = norm(x, w["norm1"])
    n = x.shape[0]
    q, k, v = (F.linear(y, w[i]).view(n, -1, SIZE).transpose(0, 1) for i in "qkv")
    q, k = rotated(q, cos, sin), rotated(k, cos, sin)
    k_cache[:, past : past + n], v_cache[:, past : past + n] = k, v
    k, v = k_cache[:, : past + n], v_cache[:, : past + n]
    y = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, enable_gqa=True)[0]
    x = x + F.linear(y.transpose(0, 1).reshape(n, WIDTH), w["o"])
    y = norm(x, w["norm2"])
    return x + F.linear(F.silu(F.linear(y, w["gate"])) * F.linear(y, w["up"]), w["down"])


def main():
    shapes = {"q": (WIDTH, WIDTH), "k": (KV * SIZE, WIDTH), "v": (KV * SIZE, WIDTH), "o": (WIDTH, WIDTH), "gate": (HIDDEN, WIDTH), "up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}
    layers = [{**{n: weights(*s) for n, s in shapes.items()}, "norm1": weights(WIDTH), "norm2": weights(WIDTH)} for _ in range(LAYERS)]
    caches = [(weights(KV, ROOM, SIZE), weights(KV, ROOM, SIZE)) for _ in range(LAYERS)]
    table, head, last = weights(VOCABULARY, WIDTH), weights(VOCABULARY, WIDTH), weights(WIDTH)
    angles = torch.outer(torch.arange(ROOM, device="cuda"), 500000 ** (-torch.arange(0, SIZE, 2, device="cuda") / SIZE)).repeat(1, 2)
    cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()

    def model(of, tokens, past):
        x, n = table[tokens], len(tokens)
        for w, (k, v) in zip(layers, caches):
            x = of(x, w, k, v, past, cos[past : past + n], sin[past : past + n], n > 1)
        return F.linear(norm(x[-1:], last), head).argmax(-1)

    for peer, of in (("eager", block), ("compile", torch.compile(block))):
        for job, n, past, times in (("prefill", PROMPT, 0, 5), ("decode", 1, PAST, 30)):
            tokens = torch.arange(n, device="cuda") * 7919 % VOCABULARY  # equal rows take less power, and products more clocks
            with torch.no_grad():
                run = lambda: model(of, tokens, past)
                for _ in range(3):
                    run()
                torch.cuda.synchronize()
                if job == "decode":  # without the host's time
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        run()
                    run = graph.replay
                    run()
                torch.cuda.synchronize()
                begun = time.perf_counter()
                for _ in range(times):
                    run()
                torch.cuda.synchronize()
                took = (time.perf_counter() - begun) / times
                print(f"{job} torch-{peer} {took * 1e3:.3f} ms {n / took:.1f} tokens/s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
