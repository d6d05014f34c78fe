#!/usr/bin/env bash
# What heapwright costs a program that does nothing: /bin/true under the preload
# against without, in callgrind instructions (at most 300,000 more, dynamic
# linking of the library included) and in peak RSS (at most 300 KiB more, median
# of 15 runs through the tiny static launcher of bench/launcher).
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MORE_INSTRUCTIONS=300000
MORE_KIB=300
RUNS=15

command_or_package valgrind valgrind
preload_library
cargo build --quiet --release --locked -p heapwright-launcher
LAUNCHER=$CARGO_TARGET_DIR/release/heapwright-launcher

instructions() { # PRELOAD-or-empty
    LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null /bin/true 2>&1 |
        sed -n 's/^==.*Collected *: *\([0-9]*\).*/\1/p'
}

# Both in turn, so that the machine's mood falls on both.
for _ in $(seq $RUNS); do
    for which in without with; do
        preload=; [ $which = with ] && preload=$HEAPWRIGHT_SO
        LD_PRELOAD=$preload "$LAUNCHER" 3 0 $BASHPID /bin/true 3>"$SCRATCH/report"
        read -r _ _ _ peak _ _ code signal _ <"$SCRATCH/report"
        [ "$code $signal" = "0 0" ] || die "/bin/true $which the preload: $(cat "$SCRATCH/report")"
        echo "$peak" >>"$SCRATCH/rss.$which"
    done
done
median() { sort -n "$1" | sed -n "$(((RUNS + 1) / 2))p"; }

without=$(instructions ""); with=$(instructions "$HEAPWRIGHT_SO")
rss_without=$(median "$SCRATCH/rss.without"); rss_with=$(median "$SCRATCH/rss.with")
[ -n "$without" ] && [ -n "$with" ] || die "callgrind printed no count"

status=0
row() { # WHAT WITHOUT WITH LIMIT
    local more=$(($3 - $2)) verdict=ok
    [ "$more" -le "$4" ] || { verdict=FAIL; status=1; }
    printf '%-4s %-16s without %9d   with %9d   more %8d   limit %8d\n' $verdict "$1" "$2" "$3" $more "$4"
}
row instructions "$without" "$with" $MORE_INSTRUCTIONS
row "peak RSS, KiB" "$rss_without" "$rss_with" $MORE_KIB
exit $status
