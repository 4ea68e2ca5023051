"""Trains the model of BenchmarkSeveral by PyTorch's DistributedDataParallel, one process a GPU:

    torchrun --standalone --nproc-per-node 2 ddp.py

Rank 0 prints the tokens of all ranks in a second (the median of five groups of steps), and the bus
bandwidth of all-reduces of 256 MiB.
"""
import os
import statistics
import time

import torch
import torch.distributed as dist

import peers


def groups(run, each):
    """The median seconds of a call, of five groups that all ranks begin together."""
    times = []
    for _ in range(5):
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(each):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / each)
    return statistics.median(times), min(times)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    size = dist.get_world_size()
    torch.manual_seed(0)
    model = peers.gpt2_model()
    if size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    compiled = torch.compile(model)
    adam = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ids, following = (torch.randint(0, 50257, (16, 1024), device="cuda") for _ in range(2))

    def step():
        adam.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(ids, following)
        loss.backward()
        adam.step()

    begin = time.perf_counter()
    step()
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    for _ in range(5):
        step()
    seconds, _ = groups(step, 20)
    tokens = size * ids.numel() / seconds
    if rank == 0:
        print(f"PyTorch DDP: GPT-2 124M bf16, {size} GPUs: {tokens:.0f} tokens/s, step {1e3 * seconds:.3f} ms, first step {first:.1f} s", flush=True)
    if size > 1:
        x = torch.ones(64 << 20, device="cuda")
        _, least = groups(lambda: dist.all_reduce(x), 10)
        if rank == 0:
            print(f"PyTorch: all-reduce of 256 MiB, {size} GPUs: {x.nbytes * 2 * (size - 1) / size / least / 1e9:.0f} GB/s of bus bandwidth", flush=True)
    dist.destroy_process_group()


main()
