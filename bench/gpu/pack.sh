#!/usr/bin/env bash
# What a bare GPU machine needs for bench/engine.py, in pieces that can be carried: .gpu/part1, .gpu/part2, …
# Usage: bench/gpu/pack.sh [MODEL_FOLDER [LECTURES_FOLDER]]. Run where pip and ffmpeg work; unpack.sh joins the pieces.
set -euo pipefail
cd "$(dirname "$0")/../.."
model=${1:-$HOME/.cache/lecturemill/models/base}
lectures=${2:-../shared/data/lectures}
python=${PYTHON_VERSION:-3.12} # of the GPU machine
largest_bytes=$((57 * 1024 * 1024))

platforms=()
for name in manylinux_2_{39,35,34,31,28,27,24,17}_x86_64 manylinux2014_x86_64 manylinux1_x86_64; do
  platforms+=(--platform "$name")
done
rm -rf .gpu
mkdir -p .gpu/all/wheels .gpu/all/audio .gpu/all/model
version() { .venv/bin/python -c "import importlib.metadata as m; print('$1==' + m.version('$1'))"; }
wheels=()
for name in faster-whisper ctranslate2 av rapidfuzz OpenCC msgspec; do wheels+=("$(version $name)"); done
.venv/bin/python -m pip --version >/dev/null 2>&1 && pip=(.venv/bin/python -m pip) || pip=(python3 -m pip)
"${pip[@]}" download --quiet --no-deps --only-binary=:all: --python-version "$python" --implementation cp \
  "${platforms[@]}" -d .gpu/all/wheels "${wheels[@]}"
for file in "$lectures"/zh_{physics,biology,math}_*.mp4 "$lectures"/en_*.mp4; do
  name=$(basename "${file%.*}")
  .venv/bin/python -c 'import sys, imageio_ffmpeg, subprocess as s
s.run([imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-loglevel", "error", "-y", "-i", sys.argv[1],
       "-vn", "-ac", "1", "-ar", "16000", sys.argv[2]], check=True)' "$file" ".gpu/all/audio/$name.flac"
  cp "${file%.*}.json" .gpu/all/audio/
done
cp "$model"/* .gpu/all/model/
tar -C .gpu/all -czf .gpu/all.tar wheels audio model
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
du -sh .gpu/part*
