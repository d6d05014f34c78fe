#!/usr/bin/env bash
# The race's own tools work: the tests of bench's workspace (what reads a race's
# results, what gets the peers), and a race so small that it measures nothing,
# from the command to the table of figures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup bench

# As in the other scripts, HEAPWRIGHT_SO names a library to race instead of ours.
[ -z "${HEAPWRIGHT_SO:-}" ] || export HEAPWRIGHT_LIBRARY=$HEAPWRIGHT_SO

# (Not optimised.)
bench() { cargo "$1" --quiet --locked --manifest-path bench/Cargo.toml --target-dir "$CARGO_TARGET_DIR/bench" "${@:2}"; }
bench test -p figures -p peers -p debug-figures -p caches -p gc -p sweep
bench test -p realm

cargo build --quiet --locked -p heapwright-cli
"$CARGO_TARGET_DIR/debug/heapwright" bench --workloads cfrac,larson --scale 0 --rounds 2 \
    --only glibc,heapwright --quiet --format json -o "$SCRATCH/race.json"
bench run -p figures -- race "$SCRATCH/race.json" >"$SCRATCH/figures"
# A row of numbers for each, in both tables; a failed run would be a word.
for program in empty cfrac larson; do
    rows=$(grep -cE "^\\| $program \\| [0-9.]+ (ms|MiB) \\| [0-9.]+ \\([0-9.]+ to [0-9.]+\\) \\|$" "$SCRATCH/figures" || true)
    [ "$rows" -eq 2 ] || { cat "$SCRATCH/figures"; die "$program has $rows rows in the tables instead of 2"; }
done
say "a small race is run and read"
