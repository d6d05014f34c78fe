#!/usr/bin/env bash
# Races heapwright against every other available allocator, on the built-in workloads and on real programs. Then prints
# the project's own targets, with measured values. docs/benchmarks.md explains both.
#
#   ci/race.sh                             everything, 15 rounds (7 of the long): an hour or more of a quiet machine
#   ci/race.sh --rounds 2 --workloads none only the real programs, quickly
#   ci/race.sh --only glibc,heapwright,snmalloc
#   ci/race.sh tools                       instead: the tests of bench's figures, peers and realm, and a race so small
#                                          that it measures nothing, from the command to the table of figures
#
# Options go to `heapwright bench` (see heapwright bench --help). Every run is kept in race.json and shown in race.html,
# under the target folder's race/, unless RACE_JSON and RACE_HTML name other files.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup race

# As in the other scripts, HEAPWRIGHT_SO names a library to race instead of ours.
[ -z "${HEAPWRIGHT_SO:-}" ] || export HEAPWRIGHT_LIBRARY=$HEAPWRIGHT_SO

tools() {
    # (Without optimisation.)
    bench() { cargo "$1" --quiet --locked --manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench" "${@:2}"; }
    bench test -p figures -p peers
    bench test -p realm

    cargo build --quiet --locked -p heapwright-cli
    "$CARGO_TARGET_DIR/debug/heapwright" bench --workloads cfrac,larson --scale 0 --rounds 2 \
        --only glibc,heapwright --quiet --format json -o "$SCRATCH/race.json"
    bench run -p figures -- race "$SCRATCH/race.json" >"$SCRATCH/figures"
    # Both tables have a row of numbers for each program. A failed run would be a word.
    for program in empty cfrac larson; do
        rows=$(grep -cE "^\\| $program \\| [0-9.k]+ \\| [0-9.]+ \\([0-9.]+ to [0-9.]+\\) \\|$" "$SCRATCH/figures" || true)
        [ "$rows" -eq 2 ] || { cat "$SCRATCH/figures"; die "$program has $rows rows in the tables instead of 2"; }
    done
    say "a small race is run and read"
}
if [ "${1:-}" = tools ]; then tools; exit; fi

WORK=$CARGO_TARGET_DIR/race
json=${RACE_JSON:-$WORK/race.json} html=${RACE_HTML:-$WORK/race.html}
mkdir -p "$WORK"

cargo build --quiet --release --locked -p heapwright-cli
bench build -p peers -p figures
"$MADE/peers" --work "$WORK/peers" >"$WORK/peers.txt"
with=()
while IFS= read -r line; do with+=(--with "$line"); done <"$WORK/peers.txt"
bench/programs/prepare.sh "$WORK/programs" >/dev/null

quiet_machine

# An allocator that fails gets a row with the failure.
status=0
rm -f "$json"
"$CARGO_TARGET_DIR/release/heapwright" bench --suite "$WORK/programs/suite.toml" "${with[@]}" \
    --format json -o "$json" --format html -o "$html" "$@" || status=$?
[ -s "$json" ] || exit $((status ? status : 1))

say ""
"$MADE/peers" --work "$WORK/peers" --versions
say ""
"$MADE/figures" race "$json"
say "every run: $json; plots: $html"
exit $status
