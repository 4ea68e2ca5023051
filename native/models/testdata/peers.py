"""Prints the milliseconds of a run of BERT-base, ViT-B/16 and the encoder of Whisper-tiny with its spectrogram, with
random weights in PyTorch on the CPU, the best of several runs: the peer of BenchmarkEncoders. An argument is
the number of threads."""

import sys
import time

import torch
from transformers import BertConfig, BertModel, ViTConfig, ViTModel, WhisperConfig, WhisperFeatureExtractor, WhisperModel


def best(f, seconds=6):
    times, end = [], time.time() + seconds
    with torch.inference_mode():
        f()
        while time.time() < end:
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
    return min(times) * 1e3


if len(sys.argv) > 1:
    torch.set_num_threads(int(sys.argv[1]))
bert = BertModel(BertConfig(), add_pooling_layer=False).eval()
vit = ViTModel(ViTConfig(), add_pooling_layer=False).eval()
for batch in (1, 8):
    tokens = torch.arange(batch * 128).reshape(batch, 128) * 7919 % 30000
    print(f"bert-base/{batch}x128 {best(lambda: bert(tokens, attention_mask=torch.ones_like(tokens))):.1f} ms", flush=True)
pixels = torch.randn(1, 3, 224, 224)
print(f"vit-base/1 {best(lambda: vit(pixels)):.1f} ms")
whisper, extract = WhisperModel(WhisperConfig()).eval().encoder, WhisperFeatureExtractor()
sound = torch.randn(480000).numpy()
print(f"whisper-tiny/30s {best(lambda: whisper(extract(sound, sampling_rate=16000, return_tensors='pt').input_features)):.1f} ms")
