#!/usr/bin/env bash
# What a bare GPU machine needs for bench.engine and bench.stream, in pieces that can be carried: .gpu/part1, .gpu/part2, …
# and the programs as they are now: .gpu/src. Usage: bench/gpu/pack.sh [MODEL_FOLDER]. Run where pip and ffmpeg work;
# unpack.sh joins the pieces. "pack.sh --src" packs the programs again and nothing else. .gpu/openvino1 and 2 are for the
# engine on that machine's processor, pieces of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf .gpu/src
mkdir -p .gpu/src
tar -czf .gpu/src/src.tgz --exclude __pycache__ --exclude results --exclude .transcripts bench pipeline consumers sql tests/gpu pyproject.toml
{ git rev-parse --short HEAD; git diff --quiet HEAD -- bench pipeline consumers || echo +changes; } | tr -d '\n' >.gpu/src/commit
[ "${1:-}" != --src ] || exit 0
model=${1:-$HOME/.cache/lecturemill/models/base}
python=${PYTHON_VERSION:-3.12} # of the GPU machine
largest_bytes=$((48 * 1024 * 1024))

platforms=()
for name in manylinux_2_{39,35,34,31,28,27,26,24,17}_x86_64 manylinux2014_x86_64 manylinux1_x86_64; do
  platforms+=(--platform "$name")
done
rm -rf .gpu/all .gpu/part* .gpu/openvino*
mkdir -p .gpu/all/wheels .gpu/all/model
# What the programs import and the machine lacks.
mapfile -t wheels < <(.venv/bin/python bench/gpu/wheels.py)
.venv/bin/python -m pip --version >/dev/null 2>&1 && pip=(.venv/bin/python -m pip) || pip=(python3 -m pip)
fetch() {
  "${pip[@]}" download --quiet --no-deps --only-binary=:all: --python-version "$python" --implementation cp --abi "cp${python/./}" \
    --abi abi3 --abi none "${platforms[@]}" -d "$@"
}
fetch .gpu/all/wheels "${wheels[@]}"
fetch .gpu/all/openvino "openvino==$(.venv/bin/python -c 'import importlib.metadata as found; print(found.version("openvino"))')"
for wheel in .gpu/all/openvino/*.whl; do
  mkdir .gpu/openvino1 .gpu/openvino2
  split -n 2 -a 1 --numeric-suffixes=1 "$wheel" "$wheel."
  for at in 1 2; do mv "$wheel.$at" ".gpu/openvino$at/"; done
done
# It is imported, but nothing is converted there: 30 MB of ffmpeg stay here.
zip -q -d .gpu/all/wheels/imageio_ffmpeg-*.whl 'imageio_ffmpeg/binaries/ffmpeg*'
.venv/bin/python -m bench.clips --out .gpu/all/clips.msgpack
cp "$model"/* .gpu/all/model/
tar -C .gpu/all -czf .gpu/all.tar wheels clips.msgpack model
size=$(stat -c %s .gpu/all.tar)
count=$(((size + largest_bytes - 1) / largest_bytes))
split -b "$(((size + count - 1) / count))" -d -a 1 .gpu/all.tar .gpu/piece
count=0
for piece in .gpu/piece*; do
  count=$((count + 1))
  mkdir ".gpu/part$count"
  mv "$piece" ".gpu/part$count/piece$count"
done
for ((at = 1; at <= count; at++)); do echo "$count" >".gpu/part$at/count"; done
rm -rf .gpu/all .gpu/all.tar
du -sh .gpu/part* .gpu/src
