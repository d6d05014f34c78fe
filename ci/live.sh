#!/usr/bin/env bash
# What it costs to look at a process, and to profile it while it runs:
#
#   watched    a load that replaces blocks, in turns alone and watched by `heapwright top` every second
#   published  the same load with publish=no and without
#   parts      of a python3 and a perl that allocate: the parts that `top` shows, beside the resident size
#   profiled   a redis under load, in turns with and without `heapwright profile PID`: median and 99th percentile of its answers
#   heard      milliseconds until a process that allocates has followed an order
#
#   ci/live.sh [--rounds N]     about two minutes; wants a quiet machine
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=7
while [ $# -gt 0 ]; do
    case $1 in
        --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || die "'${2:-}' is no number of rounds"; rounds=$2; shift 2 ;;
        *) die "'$1' is not understood; usage: ci/live.sh [--rounds N]" ;;
    esac
done
preload_library
library=$(realpath "$HEAPWRIGHT_SO")
cargo build --quiet --release --locked -p heapwright-cli
command=$CARGO_TARGET_DIR/release/heapwright
export HEAPWRIGHT_LIBRARY=$library XDG_RUNTIME_DIR=$SCRATCH
[ "$(stat -f -c %T "$SCRATCH")" = tmpfs ] || unset XDG_RUNTIME_DIR
cc -O2 -Wall -Wextra -fno-builtin -o "$SCRATCH/load" bench/live/load.c
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", b / a }'; }

for _ in $(seq "$rounds"); do
    LD_PRELOAD=$library HEAPWRIGHT=publish=no "$SCRATCH/load" 2 >>"$SCRATCH/unpublished"
    LD_PRELOAD=$library "$SCRATCH/load" 2 >>"$SCRATCH/alone"
    LD_PRELOAD=$library "$SCRATCH/load" 2 >>"$SCRATCH/watched" &
    load=$!
    for _ in 1 2; do
        sleep 0.6
        "$command" top --json $load | sed -n 's/.*"report_ns": \([0-9]*\),.*/\1/p' >>"$SCRATCH/report"
    done
    wait $load
done
alone=$(median <"$SCRATCH/alone") watched=$(median <"$SCRATCH/watched") unpublished=$(median <"$SCRATCH/unpublished")
printf 'published: %s ns a replacement, %s with publish=no: %s\n' "$alone" "$unpublished" "$(ratio "$unpublished" "$alone")"
printf 'watched:   %s ns a replacement: %s of alone\n' "$watched" "$(ratio "$alone" "$watched")"
# What cannot be told from noise by the load's time can be by what a report takes: ten a second are made while somebody looks, fewer if
# they take more than a two-hundredth.
median <"$SCRATCH/report" | awk '{ share = $1 / 1e8; printf "           a report takes %d us: %.3f %% of the time\n", $1 / 1000, 100 * (share < 0.005 ? share : 0.005) }'

seen() { # PID
    "$command" top --json "$1" | perl -0ne 'my %p; my ($parts) = /"parts": \{(.*?)\}/s; $p{$1} = $2 while $parts =~ /"(\w+)": (\d+)/g;
        my $sum = 0; $sum += $_ for values %p; my ($rss) = /"resident_bytes": (\d+)/;
        printf "%.1f MB in parts of %.1f MB resident\n", $sum / 1e6, $rss / 1e6; exit(abs($sum - $rss) > $rss / 50)'
}
status=0
for program in "python3 -c 'l=[]
while 1:
    l.append(bytearray(5000)); import time; time.sleep(0.0002)'" 'perl -e "push @a, q(x) x 3000 and select undef, undef, undef, 0.0002 while 1"'; do
    LD_PRELOAD=$library bash -c "exec $program" &
    pid=$!
    sleep 2
    printf 'parts:     %-8s ' "${program%% *}"; seen $pid || status=1
    for _ in 1 2 3 4 5; do
        began=$(date +%s%N)
        "$command" profile $pid --seconds 0.1 -o /dev/null
        echo $((($(date +%s%N) - began) / 1000000 - 100)) >>"$SCRATCH/heard"
    done
    kill $pid; wait $pid 2>/dev/null || true
done
printf 'heard:     sampling on, a profile written and named, and off: %s ms\n' "$(median <"$SCRATCH/heard")"

if command -v redis-server >/dev/null || (packages redis-server); then
    LD_PRELOAD=$library redis-server --port 17991 --save '' >/dev/null &
    pid=$!
    sleep 1
    python3 bench/live/redis.py 17991 $pid "$command" "$rounds" >"$SCRATCH/redis"
    kill $pid; wait $pid 2>/dev/null || true
    field() { awk -v at="$1" '{ print $at }' "$SCRATCH/redis" | median; }
    printf 'profiled:  median %s us, %s without: %s; 99th percentile %s us, %s without: %s\n' \
        "$(field 3)" "$(field 1)" "$(ratio "$(field 1)" "$(field 3)")" "$(field 4)" "$(field 2)" "$(ratio "$(field 2)" "$(field 4)")"
fi
exit $status
