#!/usr/bin/env bash
# Tests and times the backend on a machine with an NVIDIA GPU and neither Go nor
# this repository: it needs the driver, and NVRTC from a toolkit or from Python's
# wheels.
#
#   native/cuda/h200.sh pack build/cuda   here: builds the programs, a copy of this among them
#   build/cuda/h200.sh test               there: every test that takes a GPU
#   build/cuda/h200.sh bench              there: the table of speeds
#   build/cuda/h200.sh gpt2               there: GPT-2 124M, and where the time goes
#   build/cuda/h200.sh resnets            there: ResNets, and where the time goes; peers resnets times PyTorch's
#   build/cuda/h200.sh families DIR       there: package families beside PyTorch; logs into DIR
#   build/cuda/h200.sh further DIR        there: models of further kinds beside PyTorch; logs into DIR
#   build/cuda/h200.sh unusual DIR        there: models of unusual structure beside PyTorch; logs into DIR
#   build/cuda/h200.sh layers DIR         there: single layers beside PyTorch, and which of their kernels are slow; the log into DIR
#   build/cuda/h200.sh forward DIR        there: losses without gradients, in the batches of a server; logs into DIR
#   build/cuda/h200.sh models DIR         there: the same models at their papers' sizes, in bf16; logs into DIR
#   build/cuda/h200.sh lm                 there: products with packed weights, language models by shape, PyTorch's
#   build/cuda/h200.sh serving            there: users at once, and products of few rows with packed weights
#   build/cuda/h200.sh first              there: its first step in a new process, by parts
#   build/cuda/h200.sh products REGEXP    there: sched/matmul/testdata/products_h200.txt, of those that match
#   build/cuda/h200.sh predictions FILE   there: the costs of candidates against their times, all of them into FILE
#   build/cuda/h200.sh peers              there: the same jobs in PyTorch and JAX
#   build/cuda/h200.sh table              there: both, in one table of Markdown
#   build/cuda/h200.sh check              there: training and multiply-adds under compute-sanitizer
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export RLX_REQUIRE=cuda RLX_BENCH_TIMES=${RLX_BENCH_TIMES:-8}
export RLX_CUDA_CACHE=${RLX_CUDA_CACHE:-$(mktemp -d)}

pack() {
  mkdir -p "$1"
  local dir
  dir=$(cd "$1" && pwd)
  for package in . ../../internal/codegen/cudacpp; do
    (cd "$here" && CGO_ENABLED=1 GOOS=linux go test -c -trimpath -ldflags='-s -w' -o "$dir/" "$package")
  done
  cp "$0" "$1/h200.sh"
  cp "$here/several.sh" "$here/bench/ddp.py" "$here/bench/fsdp.py" "$1/"
  cp "$here/bench/peers.py" "$here/bench/table.py" "$here/bench/family_peers.py" "$here/bench/lm_peers.py" "$here/bench/lost.py" "$here/bench/layer_peers.py" "$here/../bench/families.py" "$here/../bench/models.py" "$here/../bench/further.py" "$here/../bench/unusual.py" "$here/../bench/serve.py" "$1/"
}

describe() { nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv,noheader; }

case ${1:-} in
pack) pack "${2:?a folder to pack into}" ;;
test) describe && "$here/cudacpp.test" -test.run '^TestGPU' && "$here/cuda.test" -test.run '^TestGPU' ;;
bench) describe && "$here/cuda.test" -test.run '^$' -test.bench . -test.benchtime "${2:-300ms}" ;;
gpt2) describe && "$here/cuda.test" -test.run '^$' -test.bench '^BenchmarkGPT2$' -test.benchtime "${2:-20x}" ;;
resnets) describe && "$here/cuda.test" -test.run '^$' -test.v -test.bench '^BenchmarkResNets$' -test.benchtime 1x ;;
families | further | unusual)
  describe
  logs=${2:-$(mktemp -d)}
  "$here/cuda.test" -test.run '^$' -test.v -test.bench "^Benchmark${1^}\$" -test.benchtime 1x >"$logs/bench" || true
  mapfile -t names < <(cd "$here" && python3 -c "import $1; print(*$1.${1^^}, sep='\n')")
  python3 "$here/family_peers.py" "${names[@]}" >"$logs/peers" 2>"$logs/refusals"
  python3 "$here/table.py" families "$logs/bench" "$logs/peers"
  ;;
layers)
  describe
  logs=${2:-$(mktemp -d)}
  "$here/cuda.test" -test.run '^$' -test.v -test.bench '^BenchmarkLayers$' -test.benchtime 1x >"$logs/layers" || true
  python3 "$here/layer_peers.py" "$logs/layers"
  python3 "$here/lost.py" "$logs/layers"
  ;;
forward)
  describe
  logs=${2:-$(mktemp -d)}
  RLX_BENCH_TIMES=1 "$here/cuda.test" -test.run '^$' -test.v -test.bench '^BenchmarkForward$' -test.benchtime 1x >"$logs/bench" || true
  mapfile -t names < <(cd "$here" && python3 -c 'import families, further, models, unusual; print(*models.MODELS_OF_CPU, *families.FAMILIES, *further.FURTHER, *unusual.UNUSUAL, sep="\n")')
  RLX_BENCH_TIMES=1 RLX_BENCH_FORWARD=1 python3 "$here/family_peers.py" "${names[@]}" >"$logs/peers" 2>"$logs/refusals"
  python3 "$here/table.py" families "$logs/bench" "$logs/peers"
  ;;
models)
  describe
  logs=${2:-$(mktemp -d)}
  "$here/cuda.test" -test.run '^$' -test.v -test.bench '^BenchmarkModels$/.*/bf16' -test.benchtime 1x >"$logs/bench" || true
  mapfile -t names < <(cd "$here" && python3 -c 'import models; print(*models.MODELS, sep="\n")')
  : >"$logs/peers"
  for ((i = 0; i < ${#names[@]}; i += 8)); do # as many as the device holds
    RLX_BENCH_TIMES=1 RLX_BENCH_PRECISIONS=bf16 python3 "$here/family_peers.py" "${names[@]:i:8}" >>"$logs/peers" 2>>"$logs/refusals"
  done
  python3 "$here/table.py" families "$logs/bench" "$logs/peers"
  ;;
lm)
  describe
  "$here/cuda.test" -test.run '^$' -test.bench '^BenchmarkMatVec$' -test.benchtime "${2:-50x}"
  "$here/cuda.test" -test.run '^$' -test.v -test.bench '^BenchmarkLanguageModels$' -test.benchtime "${3:-4x}"
  python3 "$here/lm_peers.py"
  ;;
serving) describe && "$here/cuda.test" -test.run '^$' -test.bench '^Benchmark(Serving|FewRows)$' -test.benchtime "${2:-1x}" ;;
first) describe && "$here/cuda.test" -test.run '^$' -test.bench '^BenchmarkFirst$' -test.benchtime 1x ;;
products)
  "$here/cuda.test" -test.run '^$' -test.bench "^BenchmarkProducts\$/${2:-.}/(kernels|cublaslt)" -test.benchtime 50ms |
    awk -F'[/ \t-]+' '$1 == "BenchmarkProducts" { ns[$3] = $6; if ($3 == "cublaslt") { print $2, ns["kernels"], ns[$3]; fflush() } }'
  ;;
predictions)
  describe
  RLX_BENCH_OUT=${2:-} "$here/cuda.test" -test.run '^$' -test.bench '^BenchmarkPredictions$' -test.benchtime 1x |
    awk '/candidates/ { for (i = 3; i < NF; i += 2) m[$(i + 1)] = $i; printf "%-48s %s %s %s %s %s\n", $1, m["candidates"], m["rank-median"], m["rank-least"], m["taken/fastest"], m["worst"]; fflush(); delete m }'
  ;;
peers) describe && python3 "$here/peers.py" "${@:2}" ;;
table)
  describe
  logs=$(mktemp -d)
  compared='^Benchmark(Step|MatMul|Rows)$|^BenchmarkAttention$/2048/64/causal=true/bf16|^BenchmarkGPT2$'
  "$here/cuda.test" -test.run '^$' -test.bench "$compared" -test.benchtime 20x >"$logs/bench"
  python3 "$here/peers.py" >"$logs/peers"
  python3 "$here/table.py" "$logs/bench" "$logs/peers"
  ;;
check)
  describe
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  for tool in memcheck racecheck; do
    for tests in '^TestGPUPassesTheSuite$/^(graphs|programs)$' '^TestGPUMultipliesBy(WarpGroups|Warps)$/bf16_1.03x.*_nt' '^TestGPUAttendsBy/^causal'; do
      "$sanitizer" --tool "$tool" --error-exitcode 1 "$here/cuda.test" -test.run "$tests"
    done
  done
  ;;
*) sed -n '2,22s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
