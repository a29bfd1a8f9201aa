#!/usr/bin/env bash
# Builds and runs the tests labelled gpu and multi_gpu on a CUDA machine, without installing anything. Uses the torch
# of HEADWAY_PYTHON (default: .venv/bin/python if there, else python3); torch 2.11 and later will do.
# HEADWAY_PREFIX may name a folder with GoogleTest, nlohmann-json, CLI11, PCRE2 and utf8proc where the system lacks them.
set -euo pipefail
cd "$(dirname "$0")/.."
default_python=python3
[ ! -x .venv/bin/python ] || default_python=.venv/bin/python
python=${HEADWAY_PYTHON:-$default_python}
prefix=${HEADWAY_PREFIX:-}

fail() { echo "gpu-test: $*" >&2; exit 1; }

for tool in cmake ctest g++ ninja pkg-config; do
  command -v "$tool" >/dev/null || fail "$tool is not installed"
done
"$python" - <<'CHECK' || fail "$python must have torch with a CUDA device"
import sys
try:
    import torch
except ImportError as error:
    sys.exit(f"gpu-test: {error}")
print(f"torch {torch.__version__}, {torch.cuda.device_count()} CUDA devices", flush=True)
sys.exit(not torch.cuda.is_available())
CHECK

if [ -n "$prefix" ]; then
  libraries=$(find "$prefix" -name pkgconfig -type d -printf '%p:')
  export PKG_CONFIG_PATH=$libraries${PKG_CONFIG_PATH:-}
  export LD_LIBRARY_PATH=$(find "$prefix" -name 'lib*.so*' -printf '%h\n' | sort -u | tr '\n' ':')${LD_LIBRARY_PATH:-}
fi
cmake -G Ninja -B build-gpu -DCMAKE_BUILD_TYPE=Release -DHEADWAY_BUILD_PYTHON=OFF -DHEADWAY_PYTHON="$(command -v "$python")" \
  -DCMAKE_PREFIX_PATH="$prefix" || fail "a library is missing; see above, and HEADWAY_PREFIX in tools/gpu_test.sh"
"$python" tools/make_test_models.py .cache/test-models
timeout 420 cmake --build build-gpu --target gpu_tests
ctest --test-dir build-gpu -L 'gpu' --output-on-failure --no-tests=error --timeout 120 -j 4
