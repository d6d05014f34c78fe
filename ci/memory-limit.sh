#!/usr/bin/env bash
# What becomes of programs in a control group with a memory limit:
#
#   load   holds 350 MB live in 384 MB: does it end, and how fast beside one without a limit?  (bench/limit/load.c)
#   grow   grows in ten ways until the kernel ends it: is its heap profile on disk?            (bench/limit/grow.c)
#
# And of one outside of it, that has freed 100 MB and pauses, while a program in the group has too little memory
# (bench/limit/pressure.c): does it give them back sooner than `purge` says?
#
#   ci/memory-limit.sh [--rounds N]    beside glibc and whichever peers ci/race.sh has built
#   ci/memory-limit.sh --quick         two rounds, heapwright alone; fails if a load is killed, or two profiles are missing
#
# Wants the right to make control groups (v1 or v2 with the memory controller); without it, says so and ends well.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rounds=10 quick=
while [ $# -gt 0 ]; do
    case $1 in
        --quick) rounds=2 quick=1; shift ;;
        --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || die "'${2:-}' is no number of rounds"; rounds=$2; shift 2 ;;
        *) die "'$1' is not understood; usage: ci/memory-limit.sh [--rounds N | --quick]" ;;
    esac
done

group=
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    if mkdir "$root/heapwright-$$" 2>/dev/null; then
        group=$root/heapwright-$$
        limit=$group/memory.limit_in_bytes; [ -e "$limit" ] || limit=$group/memory.max
        if [ -w "$limit" ] && echo 384M >"$limit" 2>/dev/null; then break; fi
        rmdir "$group"; group=
    fi
done
if [ -z "$group" ]; then
    echo "skip: no control group with a memory limit can be made here"
    exit 0
fi
trap 'rmdir "$group" 2>/dev/null; rm -rf "$SCRATCH"' EXIT
preload_library
library=$(realpath "$HEAPWRIGHT_SO")
for program in load grow pressure; do
    cc -O2 -Wall -Wextra -fno-builtin -pthread -o "$SCRATCH/$program" "bench/limit/$program.c"
done

within() { # LIMIT PRELOAD OPTIONS COMMAND...
    local bytes=$1 preload=$2 options=$3; shift 3
    echo "$bytes" >"$limit"
    # The subshell moves itself; its messages about signals go nowhere.
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        HEAPWRIGHT=$options LD_PRELOAD=$preload exec timeout 60 "$@"
    )
}

names=(heapwright) libraries=("$library")
if [ -z "$quick" ]; then
    names+=(glibc) libraries+=("")
    for peer in mimalloc rpmalloc snmalloc; do
        [ ! -e "target/race/peers/lib$peer.so" ] || { names+=("$peer"); libraries+=("$PWD/target/race/peers/lib$peer.so"); }
    done
    jemalloc=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2
    [ ! -e "$jemalloc" ] || { names+=(jemalloc); libraries+=("$jemalloc"); }
fi
for _ in $(seq "$rounds"); do
    for at in "${!names[@]}"; do
        for bytes in 384M 8G; do
            seconds=$(within $bytes "${libraries[at]}" "" "$SCRATCH/load" 350 2>/dev/null) || seconds=killed
            echo "$seconds" >>"$SCRATCH/${names[at]}.$bytes"
        done
    done
done 2>/dev/null
of_ended() { { grep -v killed "$1" || true; } | median; }
status=0
printf '350 MB live in 384 MB, %s rounds\n%-12s %10s %14s %14s\n' "$rounds" allocator ended "seconds" "without limit"
for name in "${names[@]}"; do
    ended=$(grep -vc killed "$SCRATCH/$name.384M") || true
    printf '%-12s %7s/%-3s %13s %14s\n' "$name" "$ended" "$rounds" "$(of_ended "$SCRATCH/$name.384M")" "$(of_ended "$SCRATCH/$name.8G")"
    [ "$name" != heapwright ] || [ "$ended" = "$rounds" ] || status=1
done

saved=0
for way in 0 1 2 3 4 5 6 7 8 9; do
    # Once more where it left none: on a busy machine the kernel may be faster.
    for _ in 1 2; do
        rm -f "$SCRATCH"/profile.*
        within 256M "$library" "sample=512k,profile=$SCRATCH/profile" "$SCRATCH/grow" $way >/dev/null 2>&1 || true
        for file in "$SCRATCH"/profile.*; do [ ! -s "$file" ] || { saved=$((saved + 1)); break 2; }; done
    done
done 2>/dev/null
printf 'killed at 256 MB, in ten ways: %s of 10 left a heap profile\n' $saved
[ $saved -ge 9 ] || status=1

if [ -r /proc/pressure/memory ]; then
    within 32M "" "" "$SCRATCH/pressure" thrash "$SCRATCH/file" 2>/dev/null &
    pausing() { HEAPWRIGHT=purge=60000$1 LD_PRELOAD=$library "$SCRATCH/pressure" pause >"$SCRATCH/pause$1"; }
    pausing ,limit=off & others=$!
    pausing ""
    wait $others
    pressure=$(sed -n 's/^some avg10=\([0-9]*\).*/\1/p' /proc/pressure/memory)
    pkill -f "$SCRATCH/pressure thrash" || true
    wait
    printf 'under pressure (%s %% of the time), 100 MB freed: %s MB left after 7 s, %s with limit=off\n' \
        "$pressure" "$(cat "$SCRATCH/pause")" "$(cat "$SCRATCH/pause,limit=off")"
    # A machine may have so much of all that nobody waits.
    [ "$pressure" -lt 10 ] || [ "$(cat "$SCRATCH/pause")" -lt 50 ] || status=1
fi 2>/dev/null
exit $status
