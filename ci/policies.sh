#!/usr/bin/env bash
# Ways to find a shared cache (bench/policies), as types: the nine of LLVM's review D47289 and a few
# more, beside the review's numbers. They are raced on real threads over a stand-in for the caches.
#
#   ci/policies.sh race [OPTION...]      --rounds 15 --caches 2 ...; 9 rounds of all take some minutes
#                                        and want a quiet machine
#   ci/policies.sh --quick               only verifies that all of it works
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

bench build -p policies
POLICIES=$MADE/policies

case ${1:-} in
    --quick)
        [ $# -eq 1 ] || die "--quick stands alone"
        bench test -p policies
        "$POLICIES" race --caches 2 --threads 8 --operations 200 --rounds 1 >/dev/null
        say "every policy is followed and raced"
        ;;
    race) "$POLICIES" "$@" ;;
    *) die "usage: ci/policies.sh race|--quick ..." ;;
esac
