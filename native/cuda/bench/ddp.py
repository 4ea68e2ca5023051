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


def bandwidths(rank, size):
    """Prints the bus bandwidth of each collective by the formulas of nccl-tests (PERFORMANCE.md), for
    arrays of which the larger has 1 and 256 MiB."""
    part = (size - 1) / size
    for mib in 1, 256:
        x, y = (torch.ones(mib << 18, device="cuda") for _ in range(2))
        first = x[: x.numel() // size]

        def shift():
            ops = [dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, y, (rank - 1) % size)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()

        for name, factor, run in (
            ("all_reduce", 2 * part, lambda: dist.all_reduce(x)),
            ("all_gather", part, lambda: dist.all_gather_into_tensor(y, first)),
            ("reduce_scatter", part, lambda: dist.reduce_scatter_tensor(first, y)),
            ("all_to_all", part, lambda: dist.all_to_all_single(y, x)),
            ("permute", 1, shift),
            ("broadcast", 1, lambda: dist.broadcast(x, 0)),
        ):
            run()
            _, seconds = groups(run, 100 if mib == 1 else 20)
            if rank == 0:
                print(f"PyTorch: {name} of {mib} MiB, {size} GPUs: {1e6 * seconds:.1f} us, {x.nbytes * factor / seconds / 1e9:.0f} GB/s of bus bandwidth", flush=True)


def main():
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    size = dist.get_world_size()
    torch.manual_seed(0)
    model = peers.gpt2_model().cuda()
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
        del model, compiled, adam
        torch.cuda.empty_cache()
        bandwidths(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
