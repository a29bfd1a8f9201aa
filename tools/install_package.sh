#!/usr/bin/env bash
# Installs the Python package into a new environment that finds torch in .venv, and uses it there: the command and a
# script that starts its own ranks, which must print the same text.
#   tools/install_package.sh MODEL_FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
model=$(realpath "${1:?usage: tools/install_package.sh MODEL_FOLDER}")
python=$(realpath -s "${HEADWAY_PYTHON:-.venv/bin/python}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# CXX as CMake chooses it by itself, so that ccache knows what `make build` has compiled already.
CXX=${CXX:-c++} "$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$work" .
"$python" -m venv --without-pip "$work/venv"
site=$("$work/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')
"$python" -c 'import site; print(site.getsitepackages()[0])' >"$site/torch.pth"
"$python" -m pip --python "$work/venv/bin/python" install -q --disable-pip-version-check --no-deps "$work"/headway-*.whl

cd "$work"
text="The three primary colours are"
venv/bin/headway --version
for file in _C.pyi py.typed; do test -f "$site/headway/$file"; done
command=$(timeout 120 venv/bin/headway generate --model "$model" --tp 2 --max-tokens 16 --prompt "$text" </dev/null)
script=$(timeout 120 venv/bin/python "$OLDPWD/examples/python/generate.py" "$model" 2 </dev/null)
script=${script%%$'\n'*}  # its first line
echo "$script"
if [ "$script" != "$text|$command| (length)" ]; then
  echo "install_package: the command says otherwise: $command" >&2
  exit 1
fi
