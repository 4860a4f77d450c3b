#!/usr/bin/env bash
# On the GPU machine, after unpack.sh: one benchmark. Usage: bench/gpu/run.sh base|turbo|large-v3 [more options]
set -euo pipefail
cd "$(dirname "$0")/../.."
. /tmp/gpu/env
shape=$1
shift
out=${OUT:-/tmp/gpu}
common=(--model /tmp/gpu/model --audio /tmp/gpu/audio --device cuda --json "$out/$shape.json")
case $shape in
  base) options=(--clips 512 --peer-clips 256 --peer-batches 32,64,128 --batches 128,256 --repeats 1) ;;
  # Random weights seldom end a text: 100 tokens are what a lecture has in 30 s.
  turbo) options=(--shape turbo --max-tokens 100 --clips 128 --peer-clips 64 --peer-batches 16,32,64 --batches 64,128 --sequential-clips 0 --repeats 1) ;;
  large-v3) options=(--shape large-v3 --max-tokens 100 --clips 64 --peer-clips 32 --peer-batches 16,32 --batches 32,64 --sequential-clips 0 --repeats 1) ;;
  *) echo "no shape $shape" >&2 && exit 2 ;;
esac
python3 -m bench.engine "${common[@]}" "${options[@]}" "$@" 2>&1 | tee "$out/$shape.log"
