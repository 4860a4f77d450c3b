#!/usr/bin/env bash
# On the GPU machine: keep the piece that was carried; once all are there, join and install them under /tmp/gpu.
# Exit status 3 while pieces are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p /tmp/gpu/pieces /tmp/gpu/openvino
cp .gpu/openvino[12]/*.whl.[12] /tmp/gpu/openvino/ 2>/dev/null || true
cp .gpu/part*/piece* /tmp/gpu/pieces/ 2>/dev/null || true
cat .gpu/part*/count 2>/dev/null | head -n 1 >/tmp/gpu/count.new && [ -s /tmp/gpu/count.new ] && mv /tmp/gpu/count.new /tmp/gpu/count
count=$(cat /tmp/gpu/count)
have=$(ls /tmp/gpu/pieces | wc -l)
echo "pieces: $have of $count"
[ "$have" -ge "$count" ] || exit 3
if [ ! -e /tmp/gpu/ready ]; then
  cat $(for ((at = 1; at <= count; at++)); do echo "/tmp/gpu/pieces/piece$at"; done) | tar -C /tmp/gpu -xzf -
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/gpu/site /tmp/gpu/wheels/*.whl
  # CTranslate2 asks for cuBLAS 12; the machine has 13, whose functions that it calls are the same.
  mkdir -p /tmp/gpu/lib
  cublas=$(python3 -c 'import glob, sys; print(next(p for d in sys.path for p in glob.glob(d + "/nvidia/*/lib/libcublas.so.13")))' 2>/dev/null ||
    find / -name 'libcublas.so.13' -not -path '/proc/*' 2>/dev/null | head -n 1)
  folder=$(dirname "$cublas")
  ln -sf "$folder/libcublas.so.13" /tmp/gpu/lib/libcublas.so.12
  ln -sf "$folder/libcublasLt.so.13" /tmp/gpu/lib/libcublasLt.so.12
  cudnn=$(dirname "$(find / -name 'libcudnn.so.9' -not -path '/proc/*' 2>/dev/null | head -n 1)")
  echo "export PYTHONPATH=/tmp/gpu/src:/tmp/gpu/site LD_LIBRARY_PATH=/tmp/gpu/lib:$folder:$cudnn:\${LD_LIBRARY_PATH:-} PYTHONUNBUFFERED=1" >/tmp/gpu/env
  touch /tmp/gpu/ready
fi
