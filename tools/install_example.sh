#!/usr/bin/env bash
# Installs the build into a temporary folder, moves that elsewhere, and builds and runs examples/generate against it,
# alone and on two ranks, which must print the same text.
#   tools/install_example.sh MODEL_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(realpath "${1:?usage: tools/install_example.sh MODEL_FOLDER}")
python=$(realpath -s "${HEADWAY_PYTHON:-.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install build --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
for file in "$work"/prefix/lib/libheadway*.so "$work/prefix/bin/headway"; do
  if readelf -d "$file" | grep -E 'R(UN)?PATH' | grep -qF "$PWD/build" || ldd "$file" | grep 'not found'; then
    echo "install_example: $file looks for libraries in the build folder, or does not find one" >&2
    exit 1
  fi
done
"$work/prefix/bin/headway" --help >/dev/null

cmake -G Ninja -S examples/generate -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DHEADWAY_PYTHON="$python"
cmake --build "$work/build"

text="The three primary colours are"
export OMP_NUM_THREADS=1
alone=$(timeout 120 "$work/build/generate" "$model" "$text" </dev/null)
together=$(timeout 120 mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,vader \
  --mca plm isolated -np 2 "$work/build/generate" "$model" "$text" </dev/null)
echo "$alone"
if [ -z "$alone" ] || [ "$alone" != "$together" ]; then
  echo "install_example: one rank and two ranks differ; on two: $together" >&2
  exit 1
fi
