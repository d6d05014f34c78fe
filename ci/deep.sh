#!/usr/bin/env bash
# Runs the checks that are too long for .ci/run, in parts. A step of .ci/run may take 80 minutes here. If a part passes,
# this script writes the commit, date and minutes into the part's row of docs/verification.md.
#
#   ci/deep.sh               all parts
#   ci/deep.sh PART...       only these
#   ci/deep.sh --list        the parts' names
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

# Steps of .ci/run with nothing left out.
steps() { HEAPWRIGHT_QUICK='' STEP_LIMIT=4800 bash .ci/run "$@"; }

# Builds crates and features alone, the crates as a registry has them, and all documentation.
part_builds() { steps clippy doc msrv header registry book gc-docs; }
# Tests other processors, C libraries, page sizes and systems, and the packages.
part_systems() { steps aarch64 musl apk old-glibc portable packages && ci/portable.sh --run; }
part_miri() { steps miri; }
part_models() { steps loom shuttle; }
part_fuzz() { FUZZ_SECONDS=${FUZZ_SECONDS:-300} GC_FUZZ_SECONDS=${GC_FUZZ_SECONDS:-600} steps fuzz gc-fuzz; }
# Runs real programs that need 700 MB of packages, leaks of real programs, other projects' builds, and the corpus.
part_programs() { ci/programs.sh more && ci/programs.sh leaks && steps valgrind corpus && ci/corpus.sh --hardened; }
# Runs fork storms for a minute in each cache model, tests of caches, chaos, and storms of profiles.
part_storms() {
    local model
    for model in auto exclusive shared:2 percpu; do
        HEAPWRIGHT_TEST_CACHE=$model HEAPWRIGHT_TEST_SECONDS=60 ci/test.sh -p heapwright-malloc --test fork || return 1
    done
    HEAPWRIGHT_TEST_SECONDS=10 ci/test.sh -p heapwright-malloc --test caches || return 1
    ci/chaos.sh "${CHAOS_SECONDS:-240}" && ci/profile.sh --storm 60
}
part_repeat() { ci/repeat.sh "${REPEAT_TIMES:-100}"; }
part_strangers() { ci/strangers.sh; }
part_lua() { runtimes/lua/check.sh; }
# Runs the core of Ruby's suite on the collected heap, and a server on Ruby for ten minutes.
part_ruby() { runtimes/ruby/check.sh suite && runtimes/ruby/check.sh life; }

PARTS=(builds systems miri models fuzz programs storms repeat strangers lua ruby)
if [ "${1:-}" = --list ]; then printf '%s\n' "${PARTS[@]}"; exit; fi
for part in "$@"; do
    [[ " ${PARTS[*]} " == *" $part "* ]] || { echo "ci/deep.sh: there is no part '$part'; parts: ${PARTS[*]}" >&2; exit 2; }
done
[ $# -eq 0 ] || PARTS=("$@")

failed=()
for part in "${PARTS[@]}"; do
    printf '##### %s\n' "$part"
    began=$SECONDS
    if "part_$part"; then
        minutes=$(((SECONDS - began + 59) / 60))
        row="| $part | $(git rev-parse --short=8 HEAD) | $(date -u +%F) | $minutes |"
        sed -i "s/^| $part | .*/$row/" docs/verification.md
        printf '##### %s held: %s\n' "$part" "$row"
    else
        failed+=("$part")
        printf '##### %s FAILED\n' "$part"
    fi
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
