#!/usr/bin/env bash
# Measures the heap profile. It must survive storms of threads that allocate, use pools and arenas, free each other's
# blocks, fork, throw, open libraries and take signals (bench/profile/storm.cc). Then a table shows its cost on real
# programs, beside the cost of jemalloc's profile.
#
#   ci/profile.sh [--rounds N] [--programs NAME,...]
#   ci/profile.sh --accuracy RUNS     only its accuracy, site by site, in RUNS runs of each program (ci/profile.py)
#   ci/profile.sh --storm SECONDS     only the storms, each of SECONDS, in all cache models, and on jemalloc's profiler
#   ci/profile.sh --quick             only the storms, each of two seconds, for every day
#   ci/profile.sh --live              the cost of watching a process, and of profiling it while it runs:
#     published   a load that replaces blocks, with publish=no and without
#     watched     the same load, alone and while `heapwright top` reads its figures twice
#     parts       the sum of the parts that `top` shows, beside the resident size (python3, perl)
#     heard       milliseconds until a process has followed an order
#     profiled    the answer times of a redis, with `heapwright profile PID` and without
#   ci/profile.sh --guards [...]      instead of the profile, a few blocks between guards (guard=sample): the table, for
#                                     --rounds and --programs, or with --storm or --quick the storms with every block
#                                     guarded
#
# The table has time and peak memory, as ratios to heapwright without a profile. For jemalloc, divide its two rows. The
# table takes five minutes on a quiet machine. HEAPWRIGHT_SO measures another library. HEAPWRIGHT_MODELS has words like
# percpu:interrupts: the storms' cache models, and which threads take signals.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup profile

usage() { die "$1; usage: ci/profile.sh [--rounds N] [--programs NAME,...] | --accuracy RUNS | --storm SECONDS | --quick | --live | --guards ..."; }
rounds=9 seconds=10 only_storm= quick= runs= guards= live=
programs=python3-malloc,sqlite3,redis,cc1,git-log,perl,ruby
while [ $# -gt 0 ]; do
    case $1 in
        --quick) seconds=2 only_storm=1 quick=1; shift; continue ;;
        --guards) guards=1; shift; continue ;;
        --live) live=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || usage "'$1' is not understood or needs a value"
    case $1 in
        --rounds) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage "'$2' is no number of rounds"; rounds=$2 ;;
        --programs) programs=$2 ;;
        --accuracy) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage "'$2' is no number of runs"; runs=$2 ;;
        --storm) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || usage "'$2' is no number of seconds"; seconds=$2 only_storm=1 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift 2
done

preload_library
library=$(realpath "$HEAPWRIGHT_SO")

jemalloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2

storms() {
    c++ -O1 -Wall -Wextra -fno-builtin -pthread -o "$SCRATCH/storm" bench/profile/storm.cc -ldl
    # Only if threads share caches, a handler may allocate in a thread that was allocating (docs/limits.md).
    local model draws=sample=4k
    [ -z "$guards" ] || draws=guard=sample:1
    for model in ${HEAPWRIGHT_MODELS:-auto:signals exclusive:signals percpu:interrupts shared:2:interrupts}; do
        storm "$draws,cache=${model%:*}" fork
        storm "$draws,cache=${model%:*}" "fork,${model##*:}"
    done
    [ -n "$quick$guards" ] || [ ! -e "$jemalloc" ] || storms_beside
}

storm() { # OPTIONS WHAT
    local said
    said=$(HEAPWRIGHT=$1 LD_PRELOAD=$library timeout $((seconds + 60)) "$SCRATCH/storm" "$seconds" "$2" 2>&1) ||
        die "a storm fails under HEAPWRIGHT=$1 (storm $seconds $2): $said"
    printf '%-32s %-16s %s\n' "$1" "$2" "$said"
}

# jemalloc's profiler in the same storms, for information only: its failures do not count.
storms_beside() {
    local what code said
    for what in fork fork,signals fork,interrupts; do
        code=0
        said=$(MALLOC_CONF=prof:true,lg_prof_sample:12 LD_PRELOAD=$jemalloc \
            timeout -k 5 $((seconds + 60)) "$SCRATCH/storm" "$seconds" "$what" 2>&1) || code=$?
        case $code in
            0) ;;
            124 | 137) said="hangs: ended a minute after its time" ;;
            *) said="ends with exit code $code${said:+: ${said##*$'\n'}}" ;;
        esac
        printf '%-32s %-16s %s\n' "jemalloc, lg_prof_sample:12" "$what" "$said"
    done
}

live() {
    local load alone watched unpublished program pid began status=0
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
    # The load's time is too noisy to show the cost. A command that watches requests ten reports a second, or fewer, so
    # that reports take at most a two-hundredth of the time.
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
    printf 'heard:     %s ms to begin sampling, write and name a profile, and end sampling\n' "$(median <"$SCRATCH/heard")"

    if command -v redis-server >/dev/null; then
        LD_PRELOAD=$library redis-server --port 17991 --save '' >/dev/null &
        pid=$!
        sleep 1
        python3 bench/live/redis.py 17991 $pid "$command" "$rounds" >"$SCRATCH/redis"
        kill $pid; wait $pid 2>/dev/null || true
        field() { awk -v at="$1" '{ print $at }' "$SCRATCH/redis" | median; }
        printf 'profiled:  median %s us, %s without: %s; 99th percentile %s us, %s without: %s\n' \
            "$(field 3)" "$(field 1)" "$(ratio "$(field 1)" "$(field 3)")" "$(field 4)" "$(field 2)" "$(ratio "$(field 2)" "$(field 4)")"
    fi
    return $status
}

accuracy() {
    programs_and_command
    c++ -O1 -Wall -Wextra -fno-builtin -o "$SCRATCH/sites" bench/profile/sites.cc
    mkdir "$SCRATCH/records"
    python3 ci/profile.py "$CARGO_TARGET_DIR/release/heapwright" "$library" "$CARGO_TARGET_DIR/race/programs/suite.toml" \
        "$SCRATCH/sites" "$SCRATCH/records" "$runs"
}

programs_and_command() {
    bench/programs/prepare.sh "$CARGO_TARGET_DIR/race/programs" >/dev/null
    cargo build --quiet --release --locked -p heapwright-cli
}

[ -z "$runs" ] || { accuracy; exit 0; }
if [ -n "$live" ]; then live; exit; fi
if [ -z "$guards" ] || [ -n "$only_storm" ]; then storms; fi
[ -z "$only_storm" ] || exit 0

# The cost.
programs_and_command
only=heapwright,sample-512k,sample-64k,jemalloc,jemalloc-prof
if [ -n "$guards" ]; then
    only=heapwright,guard-sample,guard-1000
    with=(--with "guard-sample=HEAPWRIGHT=guard=sample $library" --with "guard-1000=HEAPWRIGHT=guard=sample:1000 $library")
else
    with=(--with "sample-512k=HEAPWRIGHT=sample=512k $library" --with "sample-64k=HEAPWRIGHT=sample=64k $library")
fi
if [ -z "$guards" ] && [ -e "$jemalloc" ]; then
    with+=(--with "jemalloc=$jemalloc"
        --with "jemalloc-prof=MALLOC_CONF=prof:true,lg_prof_sample:19 $jemalloc")
fi
HEAPWRIGHT_LIBRARY=$library "$CARGO_TARGET_DIR/release/heapwright" bench --suite "$CARGO_TARGET_DIR/race/programs/suite.toml" \
    --programs "$programs" --workloads none --baseline heapwright --rounds "$rounds" --rounds-long "$rounds" \
    --only "$only" "${with[@]}"
