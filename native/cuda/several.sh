#!/usr/bin/env bash
# Tests and times several GPUs of one machine, which needs the driver, NVRTC, and NCCL from Python's
# wheels or the system; PyTorch beside it for comparison. h200.sh pack packs it.
#
#   build/cuda/several.sh test    collectives by NCCL in graphs and outside, a rank that is killed or
#                                 late, and the losses of two ranks beside those of one
#   build/cuda/several.sh bench [JOB]   GPT-2 124M by data parallelism with 1, 2, 4 and 8 GPUs, collectives,
#                                 ring attention, a decoder of 70 billion parameters, and one of 7 in training
#   build/cuda/several.sh peers   the same by PyTorch's DistributedDataParallel and FSDP2
#   build/cuda/several.sh all     all of it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export RLX_REQUIRE=cuda NCCL_NVLS_ENABLE=${NCCL_NVLS_ENABLE:-0}
export RLX_CUDA_CACHE=${RLX_CUDA_CACHE:-$(mktemp -d)}
gpus=$(nvidia-smi --list-gpus | wc -l)

describe() {
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader
  nvidia-smi topo -m || true
}

case ${1:-} in
test) describe && "$here/cuda.test" -test.v -test.run '^TestGPU(Rank|ARank)' ;;
bench) describe && "$here/cuda.test" -test.run '^$' -test.bench "^BenchmarkSeveral\$/${2:-.}" -test.benchtime 1x ;;
peers)
  for ((n = 1; n <= gpus; n *= 2)); do
    python3 -m torch.distributed.run --standalone --nproc-per-node "$n" "$here/ddp.py"
  done
  if ((gpus > 1)); then python3 -m torch.distributed.run --standalone --nproc-per-node "$gpus" "$here/fsdp.py"; fi
  ;;
all)
  for part in test bench peers; do
    "$0" "$part" || echo "several.sh: $part failed"
  done
  ;;
*) sed -n '2,11s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
