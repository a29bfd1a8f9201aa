#!/usr/bin/env bash
# Runs every fuzz target of build-fuzz: first on the worst cases that tests/fuzz/worst_cases.py writes, then for
# FUZZ_SECONDS (60) from the seeds of tests/fuzz and from what earlier runs found. An input that breaks a target is kept in build-fuzz/found and fails the run; call the target with that
# file to see it again.
#   tools/fuzz.sh [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-60}
[ $# -gt 0 ] || set -- checkpoint_index model_config safetensors_header tokenizer
# Freed memory that the sanitizer keeps aside counts as resident; the limit is for what is in use.
export ASAN_OPTIONS=quarantine_size_mb=16:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1

python3 tests/fuzz/worst_cases.py build-fuzz/worst
limits=(-timeout=10 -malloc_limit_mb=64 -rss_limit_mb=512)

# run LIMIT TARGET ARGUMENT...: prints what libFuzzer wrote if the target breaks.
run() {
  local log=build-fuzz/$2.log
  timeout --kill-after=10 "$1" "build-fuzz/bin/fuzz_$2" "${@:3}" "${limits[@]}" >"$log" 2>&1 ||
    { local code=$?; grep -v '^INFO' "$log" | tail -n 60; echo "fuzz: $2 ended with $code" >&2; exit 1; }
}

for target in "$@"; do
  grown=build-fuzz/corpus/$target found=build-fuzz/found/$target
  mkdir -p "$grown" "$found"
  run 120 "$target" build-fuzz/worst/"$target"/*
  run $((seconds + 60)) "$target" "$grown" "tests/fuzz/seeds/$target" -artifact_prefix="$found/" \
    -dict="tests/fuzz/dictionaries/$target.dict" -max_total_time="$seconds" -max_len=1048576 -print_final_stats=1
  echo "fuzz: $target: $(awk '/number_of_executed_units/ {print $2}' build-fuzz/"$target".log) inputs in $seconds s"
done
