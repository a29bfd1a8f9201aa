#!/usr/bin/env bash
# Runs tests of a build under a sanitizer; every finding fails its test.
#   tools/sanitized_tests.sh asan|tsan CTEST_ARGUMENT...
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
lists=$PWD/tools/sanitizers
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export LSAN_OPTIONS=suppressions=$lists/leaks.txt:print_suppressions=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=suppressions=$lists/threads.txt:halt_on_error=1:second_deadlock_stack=1
exec ctest --test-dir "build-$preset" --output-on-failure --no-tests=error -j2 "$@"
