#!/usr/bin/env bash
# All that is measured of what the collected heap has learned since it could sweep: generations,
# compaction, the safe door, the Scheme. One after the other, each in turns with its peers:
#
#   ci/realm.sh                              the safe door beside gc-arena, gc, dumpster, Rc, Box
#   ci/gc.sh --only generations,compact      the C door with generations and without, beside bdwgc;
#                                            two million objects compacted in steps
#   ci/scheme.sh table                       the Scheme beside guile and gambit
#   ci/scheme.sh serve                       its server for ten minutes
#
#   ci/grown.sh [ROUNDS]                     about an hour of a quiet machine; fewer rounds (default 7), less
#
# Not part of .ci/run, which runs each of them in small. Ends with 1 if a run fails or a figure is
# missed.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=${1:-7}
status=0
ci/realm.sh --strict --rounds "$rounds" || status=1
ci/gc.sh --only generations,compact --rounds "$rounds" || status=1
ci/scheme.sh table "$rounds" || status=1
ci/scheme.sh serve || status=1
exit $status
