#!/usr/bin/env bash
# Tests the Metal and Core ML backends on a Mac: the suite that all backends pass,
# gradients included, training on digits; for Metal speed, and where MLX is installed its
# speed beside it; for Core ML where it would run operations.
#
#   apple.sh FOLDER    writes FOLDER/report.txt, to be sent in, and prints it
#
# Needs Go, and the command line tools of Xcode for cgo. It takes some minutes, and writes
# nothing outside of FOLDER and Go's own cache.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# = 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
[ "$(uname -s)" = Darwin ] || { echo "$0: there is no Metal on $(uname -s): this is for a Mac" >&2; exit 1; }
for tool in go clang; do
  command -v $tool >/dev/null || { echo "$0: there is no $tool: install Go and, by xcode-select --install, Apple's command line tools" >&2; exit 1; }
done
mkdir -p "$1"
folder=$(cd "$1" && pwd)
report=$folder/report.txt
export RLX_REQUIRE=metal,coreml RLX_METAL_CACHE=$folder/cache RLX_COREML_CACHE=$folder/cache
failed=0 results=

section() { printf '\n== %s\n' "$*"; }

# step NAME COMMAND... runs a command, and goes on where it fails.
step() {
  local name=$1 result=passed
  section "$name"
  shift
  "$@" 2>&1 || { result="FAILED (exit $?)" failed=1; }
  echo "-- $result"
  results+="$result: $name"$'\n'
}

machine() {
  date -u '+%Y-%m-%d %H:%M UTC'
  echo "rlx $(git rev-parse --short HEAD 2>/dev/null || echo 'of no repository')$(git diff --quiet HEAD 2>/dev/null || echo ', changed')"
  sw_vers
  sysctl -n machdep.cpu.brand_string hw.memsize
  xcrun --show-sdk-version 2>/dev/null || true
  go version
}

mlx() {
  if ! python3 -c 'import mlx.core' 2>/dev/null; then
    echo "python3 has no MLX here (pip install mlx): not compared"
    return
  fi
  python3 native/metal/apple_mlx.py
}

all() {
  section machine
  machine
  step "what the device says" go test -count=1 -v -run '^TestGPUReportsItsName$' ./native/metal
  step "conformance: ops, gradients, training, programs, wrong input" go test -count=1 -timeout 60m -run '^TestGPUPassesTheSuite$' ./native/metal
  step "branches and loops; products and attention by matrices of SIMD-groups" go test -count=1 -v -run '^TestGPU(Branches|MultipliesByFragments|Attends)$' ./native/metal
  step "digits: 50 steps of two networks" go test -count=1 -v -timeout 20m -run '^TestGPULearnsDigits$' ./native/metal
  step "speed" go test -count=1 -run '^$' -bench '^BenchmarkGPU$' -benchtime 1s -timeout 20m ./native/metal
  step "speed of MLX" mlx
  step "Core ML: what it says of itself" go test -count=1 -v -run '^TestReportDescribesDevice$' ./native/coreml
  step "Core ML: conformance, as above" go test -count=1 -timeout 120m -run '^TestBackend$' ./native/coreml
  step "Core ML: digits: 60 steps" go test -count=1 -v -timeout 20m -run '^TestDigitsAreLearned$' ./native/coreml
  step "Core ML: binding, states, sizes, training sessions" go test -count=1 -v ./internal/coreml/driver
  step "Core ML: where operations run" go test -count=1 -v -run '^TestReportListsPlacements$' ./native/coreml
  section summary
  printf '%s' "$results"
  return $failed
}

status=0
all | tee "$report" || status=$?
echo "The report is in $report. It names no person: please attach it to an issue of github.com/rlx-go/rlx, whatever it says."
exit $status
