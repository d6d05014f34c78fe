#!/usr/bin/env bash
# Simulates shared caches on machines with many CPUs (bench/policies), by the library's own policy.
#
#   ci/policies.sh simulate [OPTION...]  tables of time and of the threads' work: minutes;
#                                        --cpus 16,64,192 --seeds 9 --ms 40 ...
#   ci/policies.sh calibrate [FILE]      measures this machine's costs (default: bench/policies/calibration.toml)
#   ci/policies.sh --quick               tests the simulator, with few CPUs and for a short time
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bench build -p policies
POLICIES=$MADE/policies

case ${1:-} in
    calibrate)
        [ $# -le 2 ] || die "calibrate takes one file"
        file=${2:-bench/policies/calibration.toml}
        "$POLICIES" calibrate >"$SCRATCH/calibration"
        cp "$SCRATCH/calibration" "$file"
        cat "$file"
        ;;
    --quick)
        [ $# -eq 1 ] || die "--quick stands alone"
        # (Optimised, because the tests simulate many machines.)
        bench test -p policies
        "$POLICIES" simulate --cpus 8,16 --ms 1 --seeds 1 >"$SCRATCH/committed"
        # The simulator can read the costs of this machine.
        if [ "$(nproc)" -ge 2 ]; then
            "$POLICIES" calibrate >"$SCRATCH/here.toml"
            "$POLICIES" simulate --cpus 8,16 --ms 1 --seeds 1 --calibration "$SCRATCH/here.toml" >"$SCRATCH/here"
            [ "$(wc -l <"$SCRATCH/here")" -eq "$(wc -l <"$SCRATCH/committed")" ] || die "costs of this machine give other tables"
        else
            say "skip: no costs can be measured on one CPU"
        fi
        say "machines are simulated"
        ;;
    simulate) "$POLICIES" "$@" ;;
    *) die "usage: ci/policies.sh simulate|calibrate|--quick ..." ;;
esac
