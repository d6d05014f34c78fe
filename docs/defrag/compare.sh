#!/usr/bin/env bash
# Active defragmentation in redis: with its own jemalloc, which has a function for it, and with heapwright, whose
# public functions docs/defrag/redis.patch lets redis call. Builds both, lets a load leave one key in four,
# here and there, and defragments under requests. A table: resident memory before and after, and p99 of requests meanwhile.
#
#   docs/defrag/compare.sh [--rounds N] [--keys N]
#
# Exit status 1 if heapwright's memory after defragmentation is more than jemalloc's, or its p99 more than 1.05 of it. Reads redis's
# source from Debian. Wants a quiet machine; about six minutes. HEAPWRIGHT_SO measures another library.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
setup defrag

usage() { die "$1; usage: docs/defrag/compare.sh [--rounds N] [--keys N]"; }
rounds=5 keys=1000000
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage "'$1' is not understood or needs a value"
    [[ $2 =~ ^[1-9][0-9]{0,7}$ ]] || usage "'$2' is no number of ${1#--}"
    case $1 in
        --rounds) rounds=$2 ;;
        --keys) keys=$2 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift 2
done
preload_library

VERSION=7.0.15
SOURCE=http://deb.debian.org/debian/pool/main/r/redis/redis_$VERSION.orig.tar.gz
SHA256=4b1dc4ee6d622a09fff9c6777191209750fb5e5a725ef78ea012d6eef4c22982
work=$CARGO_TARGET_DIR/defrag
mkdir -p "$work"
archive=$work/redis-$VERSION.tar.gz
[ -e "$archive" ] || curl -sfL -o "$archive.part" "$SOURCE" && [ ! -e "$archive.part" ] || mv "$archive.part" "$archive"
echo "$SHA256  $archive" | sha256sum --check --quiet || die "$SOURCE is not the file it was: remove $archive and look at it"

HEAPWRIGHT_LIBRARY_DIR=$(dirname "$HEAPWRIGHT_SO") sh packaging/install.sh "$work/prefix" >/dev/null
# Programs find the library that was just installed.
export PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig LD_LIBRARY_PATH=$work/prefix/lib
build() { # WHICH
    local folder=$work/$1
    [ ! -x "$folder/src/redis-server" ] || [ docs/defrag/redis.patch -nt "$folder/src/redis-server" ] || return 0
    rm -rf "$folder"
    mkdir "$folder"
    tar xzf "$archive" -C "$folder" --strip-components=1
    [ "$1" = jemalloc ] || patch -s -d "$folder" -p1 <docs/defrag/redis.patch
    make -s -j"$(nproc)" -C "$folder/src" "MALLOC=$1" redis-server redis-benchmark redis-cli >"$work/$1.log" 2>&1 ||
        { tail -n 20 "$work/$1.log"; die "redis does not build with $1"; }
}
build jemalloc
build heapwright

socket=$SCRATCH/redis.sock
cli() { "$work/jemalloc/src/redis-cli" -s "$socket" "$@"; }
info() { cli info all | tr -d '\r' | sed -n "s/^$1://p"; }
resident() { awk -v page="$(getconf PAGESIZE)" '{ print $2 * page / 1048576 }' "/proc/$1/statm"; }

# As the redis protocol: deletes three in four of the keys PREFIX:0 to PREFIX:COUNT, or of what `commands` makes of a number.
survivors='function lives(i) { return (i * 2654435761 % 4294967296) / 1073741824 < 1 }'
deletes() { # PREFIX COUNT
    awk -v prefix="$1" -v count="$2" "$survivors"' BEGIN { for (i = 0; i < count; i++) if (!lives(i)) printf "DEL %s:%d\r\n", prefix, i }'
}
hashes() { # COUNT
    awk -v count="$1" 'BEGIN { for (i = 0; i < count; i++) {
        printf "HSET h:%d", i
        for (j = 0; j < 12; j++) printf " field:%d %0*d", j, 70 + (i * 7 + j) % 60, i
        printf "\r\n" } }'
}

one() { # WHICH: writes down live, before and after in MiB, seconds, blocks moved, and p99 of each 20,000 requests
    "$work/$1/src/redis-server" --port 0 --unixsocket "$socket" --save '' --appendonly no --enable-debug-command yes \
        --hz 10 --loglevel warning --daemonize no >"$SCRATCH/redis.log" 2>&1 &
    local server=$! before after live hits took began over=
    until cli ping >/dev/null 2>&1; do kill -0 $server 2>/dev/null || { cat "$SCRATCH/redis.log"; die "redis does not start"; }; sleep 0.05; done
    cli debug populate "$keys" a 150 >/dev/null
    cli debug populate $((keys / 4)) b 600 >/dev/null
    hashes $((keys / 20)) | cli --pipe >/dev/null
    deletes a "$keys" | cli --pipe >/dev/null
    deletes b $((keys / 4)) | cli --pipe >/dev/null
    deletes h $((keys / 20)) | cli --pipe >/dev/null
    cli memory purge >/dev/null
    sleep 1
    before=$(resident $server)
    cli config set active-defrag-ignore-bytes 1mb active-defrag-threshold-lower 5 active-defrag-cycle-min 25 \
        active-defrag-cycle-max 50 >/dev/null
    began=$(date +%s%N)
    cli config set activedefrag yes >/dev/null || die "this redis has no active defragmentation: $1"
    # Requests, as long as it runs.
    touch "$SCRATCH/goes-on"
    (while [ -e "$SCRATCH/goes-on" ]; do
        "$work/jemalloc/src/redis-benchmark" -s "$socket" -c 8 -n 20000 -r "$keys" --csv GET a:__rand_int__
    done | tr -d '"' | awk -F, '$1 != "test" { print $7 }' >"$SCRATCH/p99") &
    local requests=$!
    # Redis looks once a second whether it is worth to begin, and begins again if it was not enough.
    sleep 1.5
    until [ -n "$over" ]; do
        sleep 0.2
        [ "$(info active_defrag_running)" != 0 ] || { sleep 1.5; [ "$(info active_defrag_running)" != 0 ] || over=1; }
        [ "$(($(date +%s%N) - began))" -lt 120000000000 ] || die "redis with $1 does not come to an end with its defragmentation"
    done
    took=$((($(date +%s%N) - began) / 100000000 - 15))
    rm "$SCRATCH/goes-on"
    wait $requests
    cli memory purge >/dev/null
    sleep 1
    after=$(resident $server)
    live=$(($(info used_memory) / 1048576))
    hits=$(info active_defrag_hits)
    cli shutdown nosave >/dev/null 2>&1 || true
    wait $server || true
    cat "$SCRATCH/p99" >>"$SCRATCH/p99.$1"
    printf '%s %.0f %.0f %d.%d %d\n' "$live" "$before" "$after" $((took / 10)) $((took % 10)) "$hits" >>"$SCRATCH/figures.$1"
}

for _ in $(seq "$rounds"); do
    one jemalloc
    one heapwright
done
echo "redis $VERSION, one key in four of $((keys + keys / 4 + keys / 20)) left; medians of $rounds rounds; MiB, seconds, blocks, milliseconds"
printf '%-12s %8s %8s %8s %8s %10s %8s\n' allocator live before after seconds moved p99
for which in jemalloc heapwright; do
    row=$(for column in 1 2 3 4 5; do awk -v c=$column '{ print $c }' "$SCRATCH/figures.$which" | median; done | tr '\n' ' ')
    # shellcheck disable=SC2086 # words
    printf '%-12s %8s %8s %8s %8s %10s %8s\n' $which $row "$(median <"$SCRATCH/p99.$which")"
    eval "after_$which=$(echo "$row" | cut -d' ' -f3) p99_$which=$(median <"$SCRATCH/p99.$which")"
done
awk -v ours="$after_heapwright" -v theirs="$after_jemalloc" -v p99="$p99_heapwright" -v their_p99="$p99_jemalloc" 'BEGIN {
    printf "memory %.2f, p99 %.2f of jemalloc\n", ours / theirs, p99 / their_p99
    exit(ours > theirs || p99 > 1.05 * their_p99)
}'
