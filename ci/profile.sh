#!/usr/bin/env bash
# The heap profile: what it costs on real programs, beside jemalloc's, and that it survives storms of
# threads that allocate, free each other's blocks, fork, throw, open libraries and take signals
# (bench/profile/storm.cc), with more samples than anyone asks for.
#
#   ci/profile.sh [--rounds N] [--programs NAME,...]
#   ci/profile.sh --storm SECONDS     only the storm, so long under each cache model
#   ci/profile.sh --quick             the storm for two seconds each: for every day
#
# A table of time and peak memory, ratios to heapwright without a profile (jemalloc's are to jemalloc without one: the
# quotient of its two rows). Wants a quiet machine; about five minutes. HEAPWRIGHT_SO measures another library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() { die "$1; usage: ci/profile.sh [--rounds N] [--programs NAME,...] | --storm SECONDS | --quick"; }
rounds=9 seconds=10 only_storm=
programs=python3-malloc,sqlite3,redis,cc1,git-log,perl,ruby
while [ $# -gt 0 ]; do
    case $1 in
        --quick) seconds=2 only_storm=1; shift; continue ;;
    esac
    [ $# -ge 2 ] || usage "'$1' is not understood or needs a value"
    case $1 in
        --rounds) [[ $2 =~ ^[1-9][0-9]{0,2}$ ]] || usage "'$2' is no number of rounds"; rounds=$2 ;;
        --programs) programs=$2 ;;
        --storm) [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || usage "'$2' is no number of seconds"; seconds=$2 only_storm=1 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift 2
done

command_or_package c++ g++
preload_library
library=$(realpath "$HEAPWRIGHT_SO")

c++ -O1 -Wall -Wextra -fno-builtin -pthread -o "$SCRATCH/storm" bench/profile/storm.cc -ldl
storm() { # OPTIONS WHAT
    local said
    said=$(HEAPWRIGHT=$1 LD_PRELOAD=$library timeout $((10 * seconds + 60)) "$SCRATCH/storm" "$seconds" "$2" 2>&1) ||
        die "a storm fails under HEAPWRIGHT=$1 (storm $seconds $2): $said"
    printf '%-32s %-16s %s\n' "$1" "$2" "$said"
}
for model in auto exclusive percpu shared:2; do
    storm "sample=4k,cache=$model" fork
    storm "sample=4k,cache=$model" fork,signals
done
[ -z "$only_storm" ] || exit 0

[ -e "/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2" ] || (packages libjemalloc2) || say "without jemalloc"
for program in sqlite3:sqlite3 redis-server:redis-server redis-cli:redis-tools git:git perl:perl ruby:ruby cc:gcc; do
    command -v "${program%:*}" >/dev/null || (packages "${program#*:}") || say "without ${program%:*}"
done
bench/programs/prepare.sh "$CARGO_TARGET_DIR/race/programs" >/dev/null
cargo build --quiet --release --locked -p heapwright-cli
with=(--with "sample-512k=HEAPWRIGHT=sample=512k $library" --with "sample-64k=HEAPWRIGHT=sample=64k $library")
jemalloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2
if [ -e "$jemalloc" ]; then
    with+=(--with "jemalloc=$jemalloc"
        --with "jemalloc-prof=MALLOC_CONF=prof:true,lg_prof_sample:19 $jemalloc")
fi
HEAPWRIGHT_LIBRARY=$library "$CARGO_TARGET_DIR/release/heapwright" bench --suite "$CARGO_TARGET_DIR/race/programs/suite.toml" \
    --programs "$programs" --workloads none --baseline heapwright --rounds "$rounds" --rounds-long "$rounds" \
    --only heapwright,sample-512k,sample-64k,jemalloc,jemalloc-prof "${with[@]}"
