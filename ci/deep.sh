#!/usr/bin/env bash
# Everything, without slices, and what is too long for every day: hours. docs/verification.md has the
# date of its last run in which all held.
#
#   ci/deep.sh               all
#   ci/deep.sh PART...       only these: ci strangers chaos repeat fork lua ruby
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

PARTS=(ci fork chaos repeat strangers lua ruby)
[ $# -eq 0 ] || PARTS=("$@")
# Every step of .ci/run with all slices.
part_ci() { HEAPWRIGHT_SLICE=all FUZZ_SECONDS=${FUZZ_SECONDS:-300} GC_FUZZ_SECONDS=${GC_FUZZ_SECONDS:-300} MIRI_SEEDS=${MIRI_SEEDS:-8} STEP_LIMIT=14400 bash .ci/run; }
# Fork against whatever else takes locks, a minute each, in every mode.
part_fork() {
    local model
    for model in auto exclusive shared:2 percpu; do
        HEAPWRIGHT_TEST_CACHE=$model HEAPWRIGHT_TEST_SECONDS=60 ci/test.sh -p heapwright-malloc --test fork || return 1
    done
}
part_chaos() { ci/chaos.sh 600; }
part_repeat() { ci/repeat.sh 200; }
part_strangers() { ci/strangers.sh; }
# Lua on the collected heap, with its suite.
part_lua() { runtimes/lua/check.sh; }
# Ruby, with the core of its suite, and a day's life in ten minutes.
part_ruby() { runtimes/ruby/check.sh suite && runtimes/ruby/check.sh life; }

failed=()
for part in "${PARTS[@]}"; do
    declare -F "part_$part" >/dev/null || { echo "ci/deep.sh: there is no part '$part'; parts: ci fork chaos repeat strangers lua ruby" >&2; exit 2; }
    printf '##### %s\n' "$part"
    "part_$part" || failed+=("$part")
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
echo "all held: $(date -u +%F), $(git rev-parse --short HEAD)"
