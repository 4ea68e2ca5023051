"""Trains the model of 7 billion parameters of BenchmarkSeveral by PyTorch's FSDP2, one process a GPU:

    torchrun --standalone --nproc-per-node 2 fsdp.py

Parameters, gradients and the states of AdamW are f32 and divided; products are bf16, and gradients
are summed in f32. Rank 0 prints the tokens of all ranks in a second, and the memory of its GPU.
"""
import os
import time

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

import ddp
import peers


def main(width=4096, heads=32, blocks=32, batch=4):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    size = dist.get_world_size()
    begin = time.perf_counter()
    with torch.device("meta"):
        model = peers.gpt2_model(width, heads, blocks)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        block.compile()
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cuda")
    for p in model.parameters():
        torch.nn.init.normal_(p.to_local(), std=0.02)
    adam = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    ids, following = (torch.randint(0, 50257, (batch, 1024), device="cuda") for _ in range(2))

    def step():
        adam.zero_grad(set_to_none=True)
        model(ids, following).backward()
        adam.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    first = time.perf_counter() - begin
    _, seconds = ddp.groups(step, 2)
    if rank == 0:
        tokens = size * ids.numel() / seconds
        free, total = torch.cuda.mem_get_info()
        print(f"PyTorch FSDP2: GPT of width {width} and {blocks} blocks, {size} GPUs: {tokens:.0f} tokens/s, step {1e3 * seconds:.1f} ms, "
              f"{(total - free) / 2**30:.1f} GiB of the GPU's memory, {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB allocated, ready after {first:.1f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
