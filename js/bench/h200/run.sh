#!/usr/bin/env bash
# Runs what pack.mjs packed, on a machine with an NVIDIA driver, python3 and no network.
#
#   bash run.sh RESULTS        writes RESULTS/PEER-STEPS.json, PROGRAM.log and table.txt,
#                              and where a browser was packed RESULTS/PEER-chromium.json
#
# PEERS (rlx jax tfjs; empty for none), JOBS (gpu or host), STEPS (10 50: steps between two reads; the better
# counts), REPEATS and LIMIT (seconds for one program's run) may be set.
set -uo pipefail
packed=$(cd "$(dirname "$0")" && pwd)
results=$(mkdir -p "${1:?usage: run.sh RESULTS}" && cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

unpack() {
  python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' "$packed/$1.xz" "$scratch/$1"
}
unpack node && unpack dawn.node || exit 1
chmod +x "$scratch/node"

# The driver's own description of itself, which the Vulkan loader needs by name. It names
# the library that is made for displays; the one for EGL gives the same Vulkan without
# any display library.
driver=${VK_DRIVER_FILES:-}
for folder in /usr/local/nvidia/share/vulkan/icd.d /etc/vulkan/icd.d /usr/share/vulkan/icd.d /usr/local/share/vulkan/icd.d; do
  [ -n "$driver" ] || for file in "$folder"/nvidia_icd*.json; do [ -f "$file" ] && driver=$file && break; done
done
[ -n "$driver" ] || { echo "run.sh: no nvidia_icd.json found: name the driver's file in VK_DRIVER_FILES" >&2; exit 1; }
sed 's/libGLX_nvidia/libEGL_nvidia/' "$driver" >"$scratch/driver.json"
export VK_DRIVER_FILES=$scratch/driver.json VK_ICD_FILENAMES=$scratch/driver.json
export RLX_DAWN_NODE=$scratch/dawn.node RLX_DAWN_BACKEND=default RLX_DATA=$packed/data RLX_PLANS=$packed/plans
cp "$packed/libvulkan.so.1" "$scratch/"
export LD_LIBRARY_PATH=$scratch:/usr/local/nvidia/lib64:/usr/local/nvidia/lib:${LD_LIBRARY_PATH:-}

# The browser runs with the libraries that came with it, behind this machine's C library.
if [ -f "$packed/chromium.tar.xz" ]; then
  python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$packed/chromium.tar.xz" "$scratch/chromium"
  echo "<fontconfig><dir>$scratch/chromium/fonts</dir><cachedir>$scratch/fonts</cachedir></fontconfig>" >"$scratch/fonts.conf"
  export CHROMIUM=$scratch/browser RLX_WEBGPU=default RLX_PAGE=$packed/bench/page
  {
    echo '#!/bin/bash'
    echo "export LD_LIBRARY_PATH=$scratch/chromium/lib:\$LD_LIBRARY_PATH FONTCONFIG_FILE=$scratch/fonts.conf"
    echo "exec $scratch/chromium/chromium \"\$@\""
  } >"$CHROMIUM"
  chmod +x "$CHROMIUM"
fi

{ date -u +%F; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null; "$scratch/node" --version; } | tee "$results/machine.txt"

failed=0
for program in "$packed"/programs/*/; do
  [ -d "$program" ] || continue
  name=$(basename "$program")
  echo "== $name"
  timeout "${LIMIT:-240}" "$scratch/node" "$program/$name.mjs" >"$results/$name.log" 2>&1 || { failed=1; echo "$name failed"; }
  tail -n 15 "$results/$name.log"
done
for peer in ${PEERS-rlx jax tfjs}; do
  for steps in ${STEPS:-10 50}; do
    timeout "${LIMIT:-240}" "$scratch/node" "$packed/bench/node.mjs" "$peer" default "${JOBS:-gpu}" "$steps" "${REPEATS:-5}" \
      >"$results/$peer-$steps.json" 2>"$scratch/log" || { failed=1; echo "$peer with $steps steps failed"; tail -n 5 "$scratch/log"; }
  done
done
for peer in ${CHROMIUM:+${PEERS-rlx jax tfjs}}; do
  timeout "${LIMIT:-240}" "$scratch/node" "$packed/bench/chromium.mjs" "$peer" "${JOBS:-gpu}" 50 "${REPEATS:-5}" \
    >"$results/$peer-chromium.json" 2>"$scratch/log" || { failed=1; echo "$peer in Chromium failed"; tail -n 5 "$scratch/log"; }
done
"$scratch/node" "$packed/table.mjs" "$results" | tee "$results/table.txt"
exit $failed
