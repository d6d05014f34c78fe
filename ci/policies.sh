#!/usr/bin/env bash
# Ways to find a shared cache (bench/policies), as types: the nine of LLVM's review D47289 and a few
# more, beside the review's numbers. They are raced on real threads over a stand-in for the caches,
# and simulated on 8 to 256 CPUs. All output of a simulation says that it is simulated.
#
#   ci/policies.sh race [OPTION...]      --rounds 15 --caches 2 ...; 9 rounds of all policies take some
#                                        minutes on a quiet machine
#   ci/policies.sh simulate [OPTION...]  tables of time and of each policy's steps: ten minutes on two
#                                        CPUs; --seeds 9 --cpus 96 --threads 50,100 ...
#   ci/policies.sh calibrate [FILE]      measures this machine's costs; the default place is the file
#                                        that is committed, bench/policies/calibration.toml
#   ci/policies.sh --quick               verifies only that every policy works
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bench build -p policies
POLICIES=$MADE/policies

case ${1:-} in
    calibrate)
        [ $# -le 2 ] || die "calibrate takes one file"
        file=${2:-bench/policies/calibration.toml}
        "$POLICIES" calibrate --output "$file"
        cat "$file"
        ;;
    --quick)
        [ $# -eq 1 ] || die "--quick stands alone"
        # (Optimised: simulated machines are tested, many of them.)
        bench test -p policies
        "$POLICIES" race --caches 2 --threads 8 --operations 200 --rounds 1 >/dev/null
        "$POLICIES" simulate --quick --ms 1 >"$SCRATCH/committed"
        # The costs of this machine can be read. Their values do not matter.
        if [ "$(nproc)" -ge 2 ]; then
            "$POLICIES" calibrate --output "$SCRATCH/here.toml"
            "$POLICIES" simulate --quick --ms 1 --calibration "$SCRATCH/here.toml" >"$SCRATCH/here"
            [ "$(wc -l <"$SCRATCH/here")" -eq "$(wc -l <"$SCRATCH/committed")" ] || die "costs of this machine give other tables"
        else
            say "skip: no costs can be measured on one CPU"
        fi
        say "every policy is followed, raced and simulated"
        ;;
    race | simulate) "$POLICIES" "$@" ;;
    *) die "usage: ci/policies.sh race|simulate|calibrate|--quick ..." ;;
esac
