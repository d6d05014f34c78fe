#!/usr/bin/env bash
# Takes every number of docs/benchmarks.md again and writes them there, between
# the markers; arguments go to ci/first-table.sh. Wants a quiet machine: says so
# when it is not.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

DOC=$ROOT/docs/benchmarks.md
load=$(cut -d' ' -f1 /proc/loadavg)
awk -v l="$load" 'BEGIN { exit !(l < 0.5) }' || say "warning: the load is $load; this machine is not quiet"

# The library under test for the others' counts, before it is found for ours.
peer=$CARGO_TARGET_DIR/bench/release/first-table.work/libmimalloc.so

# put NAME: replaces what stands between <!-- NAME --> and <!-- /NAME -->.
put() {
    cat >"$SCRATCH/new"
    awk -v name="$1" -v new="$SCRATCH/new" '
        $0 == "<!-- /" name " -->" { skip = 0 }
        !skip { print }
        $0 == "<!-- " name " -->" { skip = 1; print ""; while ((getline line < new) > 0) print line; print "" }
    ' "$DOC" >"$SCRATCH/doc"
    cat "$SCRATCH/doc" >"$DOC"
    say "written: $1"
}

ci/first-table.sh "$@" >"$SCRATCH/table"
put first-table <"$SCRATCH/table"
{
    echo "| library | malloc, small: path / mean | free, local | sized delete |"
    echo "|---|--:|--:|--:|"
    for library in heapwright mimalloc; do
        so=; [ $library = mimalloc ] && so=$peer
        HEAPWRIGHT_SO=$so ci/golden.sh --print >"$SCRATCH/golden.txt"
        awk -v l=$library '{ n[$1] = $2 + 0 " / " $3 + 0 } END { print "| " l " | " n["malloc_small"] " | " n["free_local"] " | " n["sized_delete"] " |" }' "$SCRATCH/golden.txt"
    done
} >"$SCRATCH/table"
put golden <"$SCRATCH/table"
{
    echo "| address | ns a call |"
    echo "|---|--:|"
    ci/describe.sh | sed -E 's/^(.*[^ ]) +([0-9.]+) ns$/| \1 | \2 |/'
} >"$SCRATCH/table"
put describe <"$SCRATCH/table"
{
    echo "| | without | with | more |"
    echo "|---|--:|--:|--:|"
    ci/startup.sh | sed -E 's/^[a-zA-Z]+ +(.*[^ ]) +without +([0-9]+) +with +([0-9]+) +more +(-?[0-9]+) .*$/| \1 | \2 | \3 | \4 |/'
} >"$SCRATCH/table"
put startup <"$SCRATCH/table"
