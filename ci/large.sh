#!/usr/bin/env bash
# Verifies what the command promises about large files.
#
#   ci/large.sh report [--quick]   records of a million findings and a gigabyte (of a million different
#                                  ones; of a thousand that come again and again) are reported within
#                                  30 seconds and 1 GiB of memory: 2.1 GiB of disk
#   ci/large.sh heap [--quick]     dumps of ten million objects with thirty million references of
#                                  any form are summarised within a minute and 1 GiB of memory:
#                                  three of at most 140 MB of disk each
#
# --quick makes a hundredth of it, with the debug build, and verifies that it works. Prints each
# figure with its target and the verdict. Ends with 1 if a target is missed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PROFILE=release PERCENT=100
case "${1:-} ${2:-}" in
    'report ' | 'heap ') ;;
    'report --quick' | 'heap --quick') PROFILE=debug PERCENT=1 ;;
    *) die "usage: ci/large.sh report|heap [--quick]" ;;
esac
flags=()
[ $PROFILE = debug ] || flags=(--release)
cargo build --quiet --locked "${flags[@]}" -p heapwright-cli -p heapwright-launcher
command=$CARGO_TARGET_DIR/$PROFILE/heapwright
launcher=$CARGO_TARGET_DIR/$PROFILE/heapwright-launcher

status=0
printf '%-42s %10s %13s %9s\n' figure asked measured verdict
row() { # NAME ASKED UNIT MEASURED
    local verdict=ok
    awk "BEGIN { exit !($4 > $2) }" && verdict=MISSED status=1
    printf '%-42s %6s %3s %9s %3s %9s\n' "$1" "$2" "$3" "$4" "$3" "$verdict"
}
# measured WHAT SECONDS CODE ARGUMENTS...: runs the command under the launcher, and prints rows for
# its time and its memory, which may be 1 GiB.
measured() {
    local wall peak code
    "$launcher" 3 0 $$ "$command" "${@:4}" 3>"$SCRATCH/cost" >"$SCRATCH/said"
    read -r wall _ _ peak _ _ code _ <"$SCRATCH/cost"
    [ "$code" -eq "$3" ] || die "$1: it ended with code $code"
    row "$1: time" "$2" s "$(awk "BEGIN { printf \"%.1f\", $wall / 1e9 }")"
    row "$1: peak memory" 1024 MiB "$((peak / 1024))"
}

large_report() {
    local findings=$((10000 * PERCENT)) mib=1024 different format
    [ $PERCENT -eq 100 ] || mib=10
    cargo build --quiet --locked -p heapwright-record --example records
    for different in $findings $((findings / 1000)); do
        "$CARGO_TARGET_DIR/debug/examples/records" "$SCRATCH/record" $findings $mib $different
        for format in text json; do
            # (The exit code is 1: something was found.)
            measured "$format, $different different" 30 1 report --format $format -o "$SCRATCH/told" "$SCRATCH/record"
            # It was told, and of all of them.
            grep -qE "^==1== ERROR SUMMARY: [0-9,]+ errors from|^    \"errors\": $findings,$" "$SCRATCH/told" ||
                die "$format: the sums are not there"
        done
    done
}

large_heap() {
    local objects=$((100000 * PERCENT)) shape dump
    cargo build --quiet --locked "${flags[@]}" -p heapwright-record --example heap_dumps
    for shape in tree list random; do
        dump=$SCRATCH/$shape.heap
        "$CARGO_TARGET_DIR/$PROFILE/examples/heap_dumps" "$dump" $objects $shape
        measured "$shape" 60 0 heap --format html -o "$SCRATCH/page.html" "$dump"
        grep -q "^heapwright heap: $shape.heap: $(sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta' <<<$objects) objects" "$SCRATCH/said" ||
            die "$shape: the sums are not there"
        row "$shape: bytes an object in the file" 16 B "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$dump") / $objects }")"
        row "$shape: the page" 4 MiB "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$SCRATCH/page.html") / 1048576 }")"
        rm "$dump"
    done
}

"large_$1"
exit $status
