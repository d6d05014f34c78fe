#!/usr/bin/env bash
# The heap profile: what it costs on real programs, beside jemalloc's; how exact it is, site by site, beside what the debug heap
# knows (ci/profile.py); and that it survives storms of threads that allocate, use pools and arenas, free each other's blocks,
# fork, throw, open libraries and take signals (bench/profile/storm.cc), with more samples than anyone asks for.
#
#   ci/profile.sh [--rounds N] [--programs NAME,...]
#   ci/profile.sh --accuracy RUNS     only how exact it is, in so many runs of each program
#   ci/profile.sh --storm SECONDS     only the storm, so long under each cache model; jemalloc's profiler beside
#   ci/profile.sh --quick             the storm for two seconds each: for every day
#   ci/profile.sh --guards [...]      what a few blocks between guards cost (guard=sample), instead: a table, with --rounds and
#                                     --programs; and the storm with every block guarded, with --storm or --quick
#
# A table of time and peak memory, ratios to heapwright without a profile (jemalloc's are to jemalloc without one: the
# quotient of its two rows). Wants a quiet machine; about five minutes. HEAPWRIGHT_SO measures another library,
# HEAPWRIGHT_MODELS=percpu:interrupts storms under some cache models only, and what signals do there.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { die "$1; usage: ci/profile.sh [--rounds N] [--programs NAME,...] | --accuracy RUNS | --storm SECONDS | --quick | --guards ..."; }
rounds=9 seconds=10 only_storm= quick= runs= guards=
programs=python3-malloc,sqlite3,redis,cc1,git-log,perl,ruby
while [ $# -gt 0 ]; do
    case $1 in
        --quick) seconds=2 only_storm=1 quick=1; shift; continue ;;
        --guards) guards=1; shift; continue ;;
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

command_or_package c++ g++
preload_library
library=$(realpath "$HEAPWRIGHT_SO")

jemalloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2

# --- storms ---------------------------------------------------------------------

storms() {
    c++ -O1 -Wall -Wextra -fno-builtin -pthread -o "$SCRATCH/storm" bench/profile/storm.cc -ldl
    # Where threads share caches a handler may interrupt anything (docs/limits.md).
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

# jemalloc's profiler in the same storms, for information: what becomes of it fails nothing.
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

# --- how exact it is ------------------------------------------------------------

accuracy() {
    command_or_package python3 python3
    local program
    for program in git perl; do
        command -v "$program" >/dev/null || (packages "$program") || say "without $program"
    done
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
if [ -z "$guards" ] || [ -n "$only_storm" ]; then storms; fi
[ -z "$only_storm" ] || exit 0

# --- what it costs --------------------------------------------------------------

[ -e "$jemalloc" ] || (packages libjemalloc2) || say "without jemalloc"
for program in sqlite3:sqlite3 redis-server:redis-server redis-cli:redis-tools git:git perl:perl ruby:ruby cc:gcc; do
    command -v "${program%:*}" >/dev/null || (packages "${program#*:}") || say "without ${program%:*}"
done
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
