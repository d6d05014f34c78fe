#!/usr/bin/env bash
# Runs crates/heapwright-malloc/tests/chaos on the preloaded library. The program checks the contents of every block. It
# runs in hard surroundings, starts with one of its first 61 system calls refused, and uses everything at once: threads,
# forks, signals, dlopen, malloc_trim, limits, and system calls that are refused at random. If a thread makes no
# progress for 5 s, the run prints the stacks of all threads and fails. MODES lists the modes and cache models.
#
#   ci/chaos.sh [SECONDS]              seconds for each mode (default: 20)
#
#   CHAOS_MODES="mode=debug"           only these options of the library (separated by spaces)
#   CHAOS_SEED=17                      the first seed; each further round of a mode adds 1. A failed round prints its
#                                      seed. The kernel decides the order of threads: run a seed several times
#   CHAOS_WITHOUT="-stdio -limits"     leaves parts out: see chaos.c
#   CHAOS_PATIENCE=20000               milliseconds without progress that are a failure (default: 5000)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup chaos

SECONDS_A_MODE=${1:-20}
read -r -a MODES <<<"${CHAOS_MODES:-cache=auto cache=shared:2 cache=percpu guard=sample:1,cache=percpu mode=debug}"
read -r -a WITHOUT <<<"${CHAOS_WITHOUT:-}"
SEED=${CHAOS_SEED:-$((RANDOM * 32768 + RANDOM))}
ROUND=15

preload_library
COMPILE=(cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -fno-builtin -Icrates/heapwright-malloc/tests/programs)
SOURCES=crates/heapwright-malloc/tests/chaos
# The program's own symbols come first for the library's system calls: -rdynamic (refusals.h).
"${COMPILE[@]}" -rdynamic -o "$SCRATCH/chaos" $SOURCES/chaos.c
"${COMPILE[@]}" -shared -fPIC -o "$SCRATCH/plugin.so" $SOURCES/plugin.c
printf '%50000s\n' '' | tr ' ' x >"$SCRATCH/line"

failures=0
# start OPTIONS WORDS...: runs the program. (Late binding would save the machine's registers on a small stack.)
start() {
    local options=$1
    shift
    timeout --kill-after=5 $((SECONDS_A_MODE + 120)) \
        env HEAPWRIGHT="$options" LD_PRELOAD="$HEAPWRIGHT_SO" LD_BIND_NOW=1 \
        "$SCRATCH/chaos" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null
}
# run OPTIONS WORDS...: as start, but fails if the program writes to stderr, which no healthy run does.
run() { start "$@" && [ ! -s "$SCRATCH/err" ]; }
# failed NAME: prints the error output of a failed run, in which the program's watchdog puts the threads' stacks.
failed() {
    failures=$((failures + 1))
    printf 'FAIL %s\n' "$1"
    grep -vE '^(\[New LWP|warning:|Using host|\[Inferior)' "$SCRATCH/err" | sed 's/^/     /'
}

# in_surroundings NAME OPTIONS...: runs the program in these surroundings. FILE in an option stands for a new file.
in_surroundings() {
    local name=$1 first=$((SEED / 4 * 4)) options seed stack ended=0
    shift
    for options in "$@"; do
        # The stack that docs/platforms.md promises, and some frames of the program.
        stack=$((4096 + 1024))
        [[ ! $options =~ mode=debug ]] || stack=$((8192 + 1024))
        for ((seed = first; seed < first + 4; seed++)); do
            rm -rf "$SCRATCH/in"
            mkdir "$SCRATCH/in"
            if start "${options/FILE/$SCRATCH/in/f}" in "$name" $seed "$SCRATCH/in" 200 $stack &&
                ! grep -qv '^heapwright: ' "$SCRATCH/err" &&
                [ -z "$(find "$SCRATCH/in" -name 'own-*' -size +0)" ]; then
                ended=$((ended + 1))
            else
                cat "$SCRATCH"/in/own-* >>"$SCRATCH/err" 2>/dev/null || true
                failed "$options, in surroundings: $name, seed $seed"
            fi
            sed -n 's/.*the heap profile is saved in //p' "$SCRATCH/err" | xargs -r rm -f
        done
    done
    printf '%-16s %4d runs ended well\n' "$name" $ended
}

say "alone, in surroundings"
FILES=(trace=FILE timeline=FILE profile=FILE,sample=4k stats_file=FILE limit=20m,sample=4k
    mode=debug,quiet=yes,leaks=exit,record=FILE)
in_surroundings sandbox "${MODES[@]}" mode=hardened stats=exit guard=sample
in_surroundings closed "${MODES[@]}" mode=hardened stats=exit guard=sample
in_surroundings stack "${MODES[@]}" mode=hardened guard=sample
in_surroundings group "${MODES[@]}" mode=hardened
in_surroundings no-files "${FILES[@]}"
in_surroundings strangers "${FILES[@]}"

say "the start, with system calls refused"
for options in "${MODES[@]}"; do
    run "$options" start 1000000 only || { failed "$options: the start"; continue; }
    calls=$(awk '{ print $1 }' "$SCRATCH/out")
    started=0
    for number in $(seq 0 $((calls < 60 ? calls : 60))); do
        for which in only after; do
            if run "$options" start "$number" $which; then started=$((started + 1)); else failed "$options: call $number refused ($which)"; fi
        done
    done
    printf '%-16s %4d starts, of which each lacks a call, or all from one on\n' "$options" $started
done

say "all at once, $SECONDS_A_MODE s a mode"
for options in "${MODES[@]}"; do
    words=(${WITHOUT[@]+"${WITHOUT[@]}"} "patience=${CHAOS_PATIENCE:-5000}")
    # docs/caches.md says where handlers may allocate.
    [[ $options =~ cache=(shared|percpu) ]] && words+=(handlers)
    # At least four rounds: with and without refusals, and each of these with and without limits.
    rounds=$(((SECONDS_A_MODE + ROUND - 1) / ROUND))
    rounds=$((rounds < 4 ? 4 : rounds))
    for ((round = 0; round < rounds; round++)); do
        seed=$((SEED + round))
        if run "$options" "$(awk "BEGIN { print $SECONDS_A_MODE / $rounds }")" $seed "$SCRATCH/plugin.so" "$SCRATCH/line" "${words[@]}"; then
            printf '%-16s seed %-10d ' "$options" $seed
            cat "$SCRATCH/out"
        else
            failed "$options, seed $seed: CHAOS_MODES=$options CHAOS_SEED=$seed ci/chaos.sh"
        fi
    done
done

[ $failures -eq 0 ] || { say "FAIL: $failures runs"; exit 1; }
say "all runs ended well"
