#!/usr/bin/env bash
# Shared caches on 8 to 256 CPUs, simulated: the library's own policy code on a
# simulated clock (bench/simulator), beside the numbers of LLVM's review D47289. All
# that it prints says so.
#
#   ci/simulate.sh [OPTION...]       the tables of docs/caches-simulated.md; options of
#                                    `simulator run`: --seeds 9 --cpus 96 --threads 50,100 ...
#   ci/simulate.sh calibrate [FILE]  measures this machine's costs; the default place is the
#                                    file that is committed, bench/simulator/calibration.toml
#   ci/simulate.sh --quick           that it works, and is the same each time
#
# All tables take about ten minutes on two CPUs; a quiet machine is needed only to
# calibrate.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

BUILT=$CARGO_TARGET_DIR/bench
bench() { cargo "$1" --quiet --locked --manifest-path bench/Cargo.toml --target-dir "$BUILT" "${@:2}"; }
bench build --release -p simulator
SIMULATOR=$BUILT/release/simulator

case ${1:-} in
    calibrate)
        [ $# -le 2 ] || die "calibrate takes one file"
        file=${2:-bench/simulator/calibration.toml}
        "$SIMULATOR" calibrate --output "$file"
        cat "$file"
        ;;
    --quick)
        [ $# -eq 1 ] || die "--quick stands alone"
        # (Optimised: it is simulated machines that are tested, many of them.)
        bench test --release -p simulator
        "$SIMULATOR" run --quick --ms 1 >"$SCRATCH/first"
        "$SIMULATOR" run --quick --ms 1 >"$SCRATCH/second"
        cmp "$SCRATCH/first" "$SCRATCH/second" || die "the same seed gives another text"
        grep '^#' "$SCRATCH/first" >"$SCRATCH/headings"
        ! grep -v '^### Simulated: ' "$SCRATCH/headings" || die "a heading does not say that it is simulated"
        [ "$(wc -l <"$SCRATCH/headings")" -eq 5 ] || die "there are not all tables"
        # What is measured here can be read, whatever it is.
        if [ "$(nproc)" -ge 2 ]; then
            "$SIMULATOR" calibrate --output "$SCRATCH/here.toml"
            "$SIMULATOR" run --quick --ms 1 --calibration "$SCRATCH/here.toml" >"$SCRATCH/here"
            [ "$(wc -l <"$SCRATCH/here")" -eq "$(wc -l <"$SCRATCH/first")" ] || die "costs of this machine give other tables"
        else
            say "skip: no costs can be measured on one CPU"
        fi
        say "simulated, and the same each time"
        ;;
    *) "$SIMULATOR" run "$@" ;;
esac
