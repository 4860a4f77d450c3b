#!/usr/bin/env bash
# On the GPU machine, after unpack.sh, with .gpu/src carried: one measurement.
# Usage: bench/gpu/run.sh base|turbo|large-v3|stream|proof|two|cpu [more options]
set -euo pipefail
cd "$(dirname "$0")/../.."
. /tmp/gpu/env
if [ -e .gpu/src/src.tgz ]; then
  rm -rf /tmp/gpu/src && mkdir /tmp/gpu/src && tar -C /tmp/gpu/src -xzf .gpu/src/src.tgz
fi
what=$1
shift
out=${OUT:-/tmp/gpu}
cat .gpu/src/commit 2>/dev/null >"$out/commit" || true
cd /tmp/gpu/src
device=cuda
before=()
if [ "$what" = cpu ]; then
  # Two cores, with one thread each, as its users have them.
  device=cpu
  before=(taskset -c "$(lscpu -p=CPU,CORE | grep -v '^#' | sort -t, -k2,2n -u | head -n 2 | cut -d, -f1 | paste -sd,)")
  if [ ! -e /tmp/gpu/site/openvino ]; then
    first=$(ls /tmp/gpu/openvino/*.whl.1)
    cat "${first%.1}.1" "${first%.1}.2" >"${first%.1}"
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/gpu/site "${first%.1}"
  fi
fi
common=(--model /tmp/gpu/model --audio /tmp/gpu/clips.msgpack --device "$device" --json "$out/$what.json")
case $what in
  base) program=(bench.engine --slices 1024) ;;
  # Random weights seldom end a text: 100 tokens are what a lecture has in 30 s.
  turbo | large-v3) program=(bench.engine --shape "$what" --max-tokens 100 --slices 128) ;;
  proof) program=(bench.gpu.proof) ;;
  two) program=(bench.gpu.two) ;;
  cpu) program=(bench.engine) ;;
  stream) program=(bench.stream --slices 2048) ;;
  *) echo "no $what" >&2 && exit 2 ;;
esac
"${before[@]}" python3 -m "${program[@]}" "${common[@]}" "$@" 2>&1 | tee "$out/$what.log"
