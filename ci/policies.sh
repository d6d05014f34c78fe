#!/usr/bin/env bash
# Ways to find a shared cache, raced against each other (bench/policies): the nine of
# LLVM's review D47289 and a few more, as types, on real threads over a stand-in for the
# caches; tables beside the review's numbers.
#
#   ci/policies.sh [OPTION...]    options of `policies race`: --rounds 15 --caches 2 ...
#   ci/policies.sh --quick        that it works; measures nothing
#
# 9 rounds of all take some minutes and want a quiet machine.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

BUILT=$CARGO_TARGET_DIR/bench
bench() { cargo "$1" --quiet --locked --manifest-path bench/Cargo.toml --target-dir "$BUILT" "${@:2}"; }
bench build --release -p policies
POLICIES=$BUILT/release/policies

if [ "${1:-}" != --quick ]; then
    "$POLICIES" race "$@"
    exit
fi
[ $# -eq 1 ] || die "--quick stands alone"

bench test -p policies
# A race, from the command line to the tables.
"$POLICIES" race --caches 2,8 --threads 8,40 --operations 200 --rounds 1 >"$SCRATCH/race" 2>"$SCRATCH/err" ||
    { cat "$SCRATCH/err" >&2; die "the race fails"; }
rows=$(grep -cE '^\| [a-z0-9-]+ \|( [0-9.]* \|)? [0-9.]+k? \| [0-9.]+ ' "$SCRATCH/race" || true)
wanted=$((2 * $("$POLICIES" list | tail -n +3 | wc -l)))
[ "$rows" -eq "$wanted" ] || { cat "$SCRATCH/race"; die "the race has $rows rows in its tables instead of $wanted"; }
! "$POLICIES" race --variants best >"$SCRATCH/race" 2>"$SCRATCH/err" || die "a wrong name is not noticed"
say "every policy is followed, and raced"
