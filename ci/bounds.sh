#!/usr/bin/env bash
# What heapwright promises about memory, measured: how much stays resident when
# other threads free, when owners died or idle, after much was freed, in threads
# that once allocated, in many that allocate a little, and what pauses cost (bench/bounds, one program a promise).
#
#   ci/bounds.sh describe [NS]   instead the cost of hw_describe: at most 30 nanoseconds (NS) a call
#                                on a warm address of every kind (a block, inside one, foreign,
#                                unmapped), and never a fault
#   ci/bounds.sh [--cache MODEL] [--with NAME=['VAR=VALUE ...]PATH']... [--with glibc] [--only PROGRAM,...]
#
# With --cache, heapwright runs under that cache model, such as shared:2.
#
# Prints each figure: what is asked, what was measured with heapwright, and the
# verdict; with --with also what another preload library needs, with a ! where
# that is more than asked (of give-back the limit is the allocator's own: it
# depends on which pages its blocks lie in). Ends with 1 where heapwright misses.
# About five minutes, and the same again for each --with; needs 2 GiB.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [ "${1:-}" = describe ]; then
    preload_library
    cc -O2 -Wall -Wextra -Werror -I include -o "$SCRATCH/describe" bench/describe/describe.c \
        "$HEAPWRIGHT_SO" -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
    "$SCRATCH/describe" "${2:-30}"
    exit
fi

usage() { die "$1; usage: ci/bounds.sh [describe | --cache MODEL] [--with NAME=PATH | --with glibc]... [--only flat,orphans,giveback,idle,crowd,periodic]"; }
names=(heapwright)
preloads=('')
only=
model=auto
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage "$1 needs a value"
    case $1 in
        --with)
            case $2 in
                glibc) names+=(glibc); preloads+=('') ;;
                ?*=?*) names+=("${2%%=*}"); preloads+=("${2#*=}") ;;
                *) usage "'$2' is no NAME=PATH" ;;
            esac
            ;;
        --only) only=,$2, ;;
        --cache) model=$2 ;;
        *) usage "'$1' is not understood" ;;
    esac
    shift 2
done

command_or_package cc gcc
preload_library
preloads[0]="HEAPWRIGHT=cache=$model $HEAPWRIGHT_SO"
for program in flat orphans giveback idle crowd periodic; do
    cc -O2 -Wall -Wextra -pthread -o "$SCRATCH/$program" bench/bounds/$program.c
done

# Whether PRELOAD (with settings before it, or none) takes effect.
check() { # NAME PRELOAD
    local path=${2##* }
    [ -z "$path" ] && return
    [ -f "$path" ] || die "$1: there is no library at '$path'"
    LD_PRELOAD=$path cat /proc/self/maps | grep -qF "$(realpath "$path")" || die "$1: $path is not taken as a preload"
}
for i in "${!names[@]}"; do check "${names[i]}" "${preloads[i]}"; done

failures=0
printf '%-55s %9s %5s %12s %7s' figure asked unit heapwright verdict
for name in "${names[@]:1}"; do printf ' %14s' "$name"; done
printf '\n'

# run PROGRAM ARGUMENT...: the rows of one run of a program, under each allocator.
run() {
    [ -z "$only" ] || [[ $only == *,$1,* ]] || return 0
    local i settings path status
    for i in "${!names[@]}"; do
        path=${preloads[i]##* } settings=()
        [[ ${preloads[i]} == *' '* ]] && read -ra settings <<<"${preloads[i]% *}"
        status=0
        timeout 300 env "${settings[@]}" LD_PRELOAD="$path" "$SCRATCH/$1" "${@:2}" >"$SCRATCH/out" 2>"$SCRATCH/errors" || status=$?
        [ -z "${BOUNDS_DETAILS:-}" ] || sed -n "s/^#/# ${names[i]}:/p" "$SCRATCH/out" >&2
        if [ $status -ne 0 ]; then
            [ "$i" -gt 0 ] || die "'$*' ended with status $status: $(head -1 "$SCRATCH/errors")"
            sed -n 's/^\([^\t]*\)\t.*/\1\t-\t0\t-/p' "$SCRATCH/first" >"$SCRATCH/out"
        fi
        grep $'\t' "$SCRATCH/out" >"$SCRATCH/column.$i"
        [ "$i" -gt 0 ] || cp "$SCRATCH/column.0" "$SCRATCH/first"
    done
    local row=0 name measured limit unit cells verdict
    while IFS=$'\t' read -r name measured limit unit; do
        row=$((row + 1)) verdict=ok
        if [ "$limit" = 0.00 ]; then
            limit=- verdict=
        elif awk -v m="$measured" -v l="$limit" 'BEGIN { exit !(m > l) }'; then
            verdict=MISS failures=$((failures + 1))
        fi
        cells=
        for i in "${!names[@]}"; do
            [ "$i" -gt 0 ] || continue
            cells+=$(sed -n "${row}p" "$SCRATCH/column.$i" | awk -F'\t' '{ printf " %14s", $2 "" ($3 > 0 && $2 + 0 > $3 + 0 ? "!" : "") }')
        done
        printf '%-55s %9s %5s %12s %7s%s\n' "$name" "$limit" "$unit" "$measured" "$verdict" "$cells"
    done <"$SCRATCH/first"
}

#    name                  P C size  order  live MiB  traffic MiB
run flat "flat mixed 1:1"        1 1 0    fifo   32 2048
run flat "flat mixed 1:1 random" 1 1 0    random 32 2048
run flat "flat 64 B 1:1 random"  1 1 64   random 32 1024
run flat "flat 8 KiB 1:1 random" 1 1 8192 random 64 4096
run flat "flat mixed 1:3 random" 1 3 0    random 32 2048
run flat "flat 8 KiB 1:3 random" 1 3 8192 random 64 4096
run flat "flat mixed 3:1 random" 3 1 0    random 64 4096
run flat "flat 8 KiB 3:1 random" 3 1 8192 random 64 4096

run orphans all 64 30
run orphans half 64 30
run orphans survivor 64 8
run orphans idle 64 8

for size in 64 1024 16384 1048576; do
    for how in little pair trim; do run giveback one $size 1024 $how; done
done
for size in 1024 16384; do
    for who in four other; do
        for how in little trim; do run giveback $who $size 1024 $how; done
    done
done

run idle "idle threads, 2000 blocks to 32 KiB" 1000 2000 11
run idle "idle threads, 200 blocks to 2 KiB" 1000 200 7

for blocks in 10 100 400; do run crowd "crowd of 2000 threads, $blocks blocks" 2000 $blocks; done

#             name                 pause periods
run periodic "bursts every 100 ms"  100  60
run periodic "bursts every 500 ms"  500  20
run periodic "bursts every 2 s"     2000 12
run periodic "bursts every 5 s"     5000 10

[ $failures -eq 0 ] || { say "$failures figures are missed"; exit 1; }
say "all figures hold"
