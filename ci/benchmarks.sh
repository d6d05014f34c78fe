#!/usr/bin/env bash
# Measures the pages' figures again: runs the commands of SECTIONS, and stores their outputs in docs/figures.json, with
# missed figures. Then renders the pages and README's table (bench/figures). Warns if the machine is not quiet.
#
#   ci/benchmarks.sh SECTION...    these sections; without a section, prints the list with the commands
#   ci/benchmarks.sh all           all of them: most of a day
#   ci/benchmarks.sh tables        the race's section again, from the results of the last race
#
# No command prints the tables of corpus, gc-grown, hardened and profile as the pages have them. They are put together
# by hand, and stored with `figures store`.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup race

SECTIONS=(
    "race ci/race.sh" "bounds ci/bounds.sh" "golden ci/golden.sh --print" "describe ci/bounds.sh describe"
    "startup ci/bounds.sh startup" "sweep ci/sweep.sh"
    "check-memcheck ci/check.sh --quick --valgrind --rounds 3 programs" "check-programs ci/check.sh --no-valgrind programs" "check-short ci/check.sh --no-valgrind short"
    "check-asan ci/check.sh asan" "check-snapshot ci/check.sh snapshot"
    "debug-pr ci/debug.sh --no-valgrind pr" "debug-flat ci/debug.sh flat" "debug-captures ci/debug.sh captures"
    "debug-programs ci/debug.sh --no-valgrind programs" "pools ci/pools.sh" "caches ci/caches.sh"
    "caches-auto ci/caches.sh --threads 2,8,40 --rounds 4 --percent 10 --only exclusive,auto,percpu rpc idle ttest1"
    "gc ci/gc.sh gcbench splay strings pauses scaling compact" "gc-garbage ci/gc.sh fillers quads garbage"
    "gc-ephemerons ci/gc.sh ephemerons finalizers" "gc-realm ci/gc.sh realm" "profile-accuracy ci/profile.sh --accuracy 10"
)
[ $# -gt 0 ] || { printf '%s\n' "${SECTIONS[@]}"; exit 0; }
work=$CARGO_TARGET_DIR/race

# Runs the race once. An allocator that fails gets a row with the failure.
race() {
    rm -f "$work/race.json"
    ci/race.sh >&2 || say "the race ended with status $?" >&2
    tables
}
tables() {
    [ -s "$work/race.json" ] || die "there are no results in $work/race.json; ci/race.sh makes them"
    "$MADE/figures" race "$work/race.json"
    echo
    "$MADE/peers" --work "$work/peers" --versions
}
bounds() {
    local with
    mapfile -t with < <(peers "$work/peers" mimalloc,snmalloc | sed 's/^/--with\n/')
    ci/bounds.sh --with glibc ${with[@]+"${with[@]}"}
}
golden() {
    local library so name path mean
    "$MADE/peers" --work "$work/peers" --only mimalloc --strict >/dev/null
    printf '| instructions of a call | path | mean |\n|---|--:|--:|\n'
    for library in heapwright mimalloc; do
        so=$HEAPWRIGHT_SO
        [ $library = heapwright ] || so=$work/peers/libmimalloc.so
        HEAPWRIGHT_SO=$so ci/golden.sh --print | while read -r name path mean _; do
            echo "| $library, $name | $path | $mean |"
        done
    done
}

# take SECTION COMMAND...: runs the function of the section's name, or else the command, and stores the output.
take() {
    local status=0 run=("${@:2}")
    ! declare -F "$1" >/dev/null || run=("$1")
    "${run[@]}" >"$SCRATCH/said" || status=$?
    [ $status -eq 0 ] || { [ $status -eq 1 ] && grep -qi missed "$SCRATCH/said"; } || { cat "$SCRATCH/said" >&2; die "${*:2} failed"; }
    section=$1
    [ "$section" != tables ] || section=race
    "$MADE/figures" store "$section" --command "${*:2}" <"$SCRATCH/said"
}

quiet_machine
# All scripts measure one library.
preload_library
bench build -p peers -p figures
for chosen; do
    [ "$chosen" != tables ] || { take tables ci/race.sh; continue; }
    known=
    for line in "${SECTIONS[@]}"; do
        [ "$chosen" = all ] || [ "$chosen" = "${line%% *}" ] || continue
        read -ra words <<<"$line"
        take "${words[@]}"
        known=1
    done
    [ -n "$known" ] || die "no section named $chosen"
done
