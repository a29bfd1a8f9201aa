#!/usr/bin/env bash
# Runs clang-tidy on sources that the build folder knows, two at a time.
#   tools/tidy.sh [FILE...]     without files: every source below src
set -euo pipefail
cd "$(dirname "$0")/.."
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files 'src/*.cpp')
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build --quiet
