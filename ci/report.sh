#!/usr/bin/env bash
# What `heapwright report` promises about large records: one of a million findings
# and a gigabyte is reported within 30 seconds and 1 GiB of memory.
#
#   ci/report.sh           two records of that size: of a million different findings,
#                          and of a thousand that come again and again (2.1 GiB of disk)
#   ci/report.sh --quick   a hundredth of it, with the debug build: that it works
#
# Prints each figure: what is asked, what was measured, the verdict. Ends with 1 where
# it is missed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

FINDINGS=1000000 MIB=1024 PROFILE=release
case ${1:-} in
    '') ;;
    --quick) FINDINGS=10000 MIB=10 PROFILE=debug ;;
    *) die "usage: ci/report.sh [--quick]" ;;
esac
SECONDS_ASKED=30 MIB_ASKED=1024

flags=()
[ $PROFILE = debug ] || flags=(--release)
cargo build --quiet --locked "${flags[@]}" -p heapwright-cli -p heapwright-launcher
cargo build --quiet --locked -p heapwright-record --example records
command=$CARGO_TARGET_DIR/$PROFILE/heapwright
launcher=$CARGO_TARGET_DIR/$PROFILE/heapwright-launcher

status=0
printf '%-42s %9s %12s %9s\n' figure asked measured verdict
row() { # NAME ASKED UNIT MEASURED
    local verdict=ok
    awk "BEGIN { exit !($4 > $2) }" && verdict=MISSED status=1
    printf '%-42s %5s %3s %8s %3s %9s\n' "$1" "$2" "$3" "$4" "$3" "$verdict"
}
for different in $FINDINGS $((FINDINGS / 1000)); do
    "$CARGO_TARGET_DIR/debug/examples/records" "$SCRATCH/record" $FINDINGS $MIB $different
    for format in text json; do
        "$launcher" 3 0 $$ "$command" report --format $format -o "$SCRATCH/told" "$SCRATCH/record" 3>"$SCRATCH/cost"
        # It was told, and of all of them. (The exit code is 1: something was found.)
        read -r wall _ _ peak _ _ code _ < "$SCRATCH/cost"
        [ "$code" -eq 1 ] || die "the report ended with code $code"
        grep -qE "^==1== ERROR SUMMARY: [0-9,]+ errors from|^    \"errors\": $FINDINGS,$" "$SCRATCH/told" ||
            die "$format: the sums are not there"
        row "$format, $different different: time" $SECONDS_ASKED s "$(awk "BEGIN { printf \"%.1f\", $wall / 1e9 }")"
        row "$format, $different different: peak memory" $MIB_ASKED MiB "$((peak / 1024))"
    done
done
exit $status
