#!/usr/bin/env bash
# What `heapwright heap` promises about large heaps: a dump of ten million objects with
# thirty million references is summarised within a minute and 1 GiB of memory, whatever
# the references are like.
#
#   ci/heap.sh           three dumps of that size (at most 140 MB of disk each)
#   ci/heap.sh --quick   a hundredth of it, with the debug build: that it works
#
# Prints each figure: what is asked, what was measured, the verdict. Ends with 1 where
# it is missed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

OBJECTS=10000000 PROFILE=release
case ${1:-} in
    '') ;;
    --quick) OBJECTS=100000 PROFILE=debug ;;
    *) die "usage: ci/heap.sh [--quick]" ;;
esac
SECONDS_ASKED=60 MIB_ASKED=1024 BYTES_ASKED=16

flags=()
[ $PROFILE = debug ] || flags=(--release)
cargo build --quiet --locked "${flags[@]}" -p heapwright-cli -p heapwright-launcher
cargo build --quiet --locked "${flags[@]}" -p heapwright-record --example heap_dumps
command=$CARGO_TARGET_DIR/$PROFILE/heapwright
launcher=$CARGO_TARGET_DIR/$PROFILE/heapwright-launcher

status=0
printf '%-42s %10s %13s %9s\n' figure asked measured verdict
row() { # NAME ASKED UNIT MEASURED
    local verdict=ok
    awk "BEGIN { exit !($4 > $2) }" && verdict=MISSED status=1
    printf '%-42s %6s %3s %9s %3s %9s\n' "$1" "$2" "$3" "$4" "$3" "$verdict"
}
for shape in tree list random; do
    dump=$SCRATCH/$shape.heap
    "$CARGO_TARGET_DIR/$PROFILE/examples/heap_dumps" "$dump" $OBJECTS $shape
    "$launcher" 3 0 $$ "$command" heap --format html -o "$SCRATCH/page.html" "$dump" 3>"$SCRATCH/cost" >"$SCRATCH/told"
    read -r wall _ _ peak _ _ code _ < "$SCRATCH/cost"
    [ "$code" -eq 0 ] || die "the summary ended with code $code"
    grep -q "^heapwright heap: $shape.heap: $(sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta' <<<$OBJECTS) objects" "$SCRATCH/told" ||
        die "$shape: the sums are not there"
    row "$shape: bytes an object in the file" $BYTES_ASKED B "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$dump") / $OBJECTS }")"
    row "$shape: time" $SECONDS_ASKED s "$(awk "BEGIN { printf \"%.1f\", $wall / 1e9 }")"
    row "$shape: peak memory" $MIB_ASKED MiB "$((peak / 1024))"
    row "$shape: the page" 4 MiB "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$SCRATCH/page.html") / 1048576 }")"
    rm "$dump"
done
exit $status
