#!/usr/bin/env bash
# Measures heapwright's promises about memory and time. Prints each figure: target, measured value, verdict. Ends with 1
# if heapwright misses a target.
#
#   ci/bounds.sh [--cache MODEL] [--with NAME=['VAR=VALUE ...]PATH']... [--with glibc] [--only PROGRAM,...]
#                                the memory that stays resident, and the cost of pauses (bench/bounds, a program for
#                                each promise). --cache sets heapwright's cache model. --with adds another preload
#                                library, with a ! at each figure above the target. (The target of `giveback` depends
#                                on the pages in which the allocator's blocks lie.) Takes five minutes for each library,
#                                and 2 GiB
#   ci/bounds.sh describe [NS]   the cost of hw_describe: at most 30 nanoseconds (NS) a call on a warm address of every
#                                kind (a block, inside one, foreign, unmapped), and never a fault
#   ci/bounds.sh startup         the cost of the preload for a program that does nothing: instructions of /bin/true, by
#                                callgrind; resident memory in main, the best mean of 300 runs; the libraries' sizes
#   ci/bounds.sh report|heap [--quick]   the command's time and memory. `report` reads two records of a gigabyte with a
#                                million findings, all different or a thousand that repeat (2.1 GiB of disk). `heap`
#                                summarises dumps of ten million objects with thirty million references, of three
#                                forms. --quick does a hundredth of the work, with the debug build
#   ci/bounds.sh limit [--rounds N | --quick]
#                                runs three programs with a memory limit, in a control group (bench/limit). One holds
#                                350 MB live in 384 MB: does it end, and how fast beside a run with 8 GB? One grows in
#                                ten ways until the kernel ends it: is its heap profile on disk? The third frees 100 MB
#                                outside of the group, while another process lacks memory in it: does the third give
#                                memory back sooner than `purge` says? --quick: two rounds, heapwright alone. Skips if
#                                no control group can be made
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup bounds

describe() {
    preload_library
    cc -O2 -Wall -Wextra -Werror -I include -o "$SCRATCH/describe" bench/describe/describe.c \
        "$HEAPWRIGHT_SO" -Wl,-rpath,"$(dirname "$HEAPWRIGHT_SO")"
    "$SCRATCH/describe" "${1:-30}"
}

status=0
row() { # FIGURE ASKED UNIT MEASURED
    local verdict=ok
    ! awk "BEGIN { exit !($4 > $2) }" || verdict=MISSED status=1
    [ -n "${headed:-}" ] || printf '| figure | asked | measured | verdict |\n|---|--:|--:|---|\n'
    headed=1
    echo "| $1 | $2${3:+ $3} | $4${3:+ $3} | $verdict |"
}

startup() {
    local copy own name with without best='' this
    all_libraries
    # In smaps_rollup the kernel counts pages. `getrusage` and VmHWM lack up to 128 KiB that CPUs have not added yet.
    cc -O2 -Wall -Wextra -o "$SCRATCH/resident" -x c - <<'C'
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
static char text[4096];
int main(void)
{
    int rollup = open("/proc/self/smaps_rollup", O_RDONLY);
    if (rollup < 0 || read(rollup, text, sizeof text - 1) <= 0)
        return 1;
    const char *line = strstr(text, "\nRss:");
    const char *end = line ? strchr(line + 1, '\n') : 0;
    return !end || write(1, line + 1, end - line) < 0;
}
C
    # The kernel maps the pages around a touched one, up to a border of 64 KiB. Each start places the library elsewhere, so
    # a mean of many starts counts. A library that was just written lies in the page cache in large pieces, of which a
    # fault maps 100 KiB more. So the script measures a copy of its own, past the cache if the file system can do that.
    # The kernel may keep pages all the same, so the best of three copies counts.
    mean() { awk '{ sum += $2 } END { printf "%d\n", sum / NR }'; }
    for copy in 1 2 3; do
        own=$SCRATCH/startup.$copy.so
        dd if="$HEAPWRIGHT_SO" of="$own" bs=1M oflag=direct status=none 2>/dev/null || cp "$HEAPWRIGHT_SO" "$own"
        sync "$own"
        dd if="$own" iflag=nocache count=0 status=none
        for _ in $(seq 300); do
            "$SCRATCH/resident" >>"$SCRATCH/without.$copy" && LD_PRELOAD=$own "$SCRATCH/resident" >>"$SCRATCH/with.$copy" ||
                die "the program that prints its resident memory failed"
        done
        this=$(($(mean <"$SCRATCH/with.$copy") - $(mean <"$SCRATCH/without.$copy")))
        [ -n "$best" ] && [ "$this" -ge "$best" ] || best=$this
        [ "$best" -gt 120 ] || break
    done
    instructions() { LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null /bin/true 2>&1 | sed -n 's/^==.*Collected *: *\([0-9]*\).*/\1/p'; }
    without=$(instructions '') with=$(instructions "$HEAPWRIGHT_SO")
    [ -n "$without" ] && [ -n "$with" ] || die "callgrind printed no count"
    row "instructions of /bin/true, more" 300000 '' $((with - without))
    row "resident, more" 120 KiB "$best"
    for own in "$HEAPWRIGHT_SO" "$HEAPWRIGHT_HARDENED_SO" "$HEAPWRIGHT_CHECK_SO"; do
        name=${own##*/}
        row "${name%.so}" 2500000 B "$(stat -L -c %s "$own")"
    done
}

# large [--quick]: builds the command that reads large files, and the examples that write them.
large() {
    PROFILE=release PERCENT=100
    [ "${1:-}" != --quick ] || PROFILE=debug PERCENT=1
    local flags=()
    [ $PROFILE = debug ] || flags=(--release)
    cargo build --quiet --locked "${flags[@]}" -p heapwright-cli -p heapwright-launcher
    cargo build --quiet --locked "${flags[@]}" -p heapwright-record --example records --example heap_dumps
    MADE=$CARGO_TARGET_DIR/$PROFILE
}
# measured WHAT SECONDS CODE ARGUMENTS...: runs the command under the launcher. Prints its time and memory.
measured() {
    local user system peak code
    "$MADE/heapwright-launcher" 3 0 $$ "$MADE/heapwright" "${@:4}" 3>"$SCRATCH/cost" >"$SCRATCH/said"
    read -r _ user system peak _ _ code _ <"$SCRATCH/cost"
    [ "$code" -eq "$3" ] || die "$1: it ended with code $code"
    row "$1: processor time" "$2" s "$(awk "BEGIN { printf \"%.1f\", ($user + $system) / 1e6 }")"
    row "$1: peak memory" 1024 MiB "$((peak / 1024))"
}
report() {
    large "$@"
    local findings=$((10000 * PERCENT)) different format
    for different in $findings $((findings / 1000)); do
        "$MADE/examples/records" "$SCRATCH/record" $findings $((PERCENT < 100 ? 10 : 1024)) $different
        for format in text json; do
            measured "$format, $different different" 30 1 report --format $format -o "$SCRATCH/told" "$SCRATCH/record"
            grep -qE "^==1== ERROR SUMMARY: [0-9,]+ errors from|^    \"errors\": $findings,$" "$SCRATCH/told" || die "$format: the sums are not there"
        done
    done
}
heap() {
    large "$@"
    local objects=$((100000 * PERCENT)) shape dump
    for shape in tree list random; do
        dump=$SCRATCH/$shape.heap
        "$MADE/examples/heap_dumps" "$dump" $objects $shape
        measured "$shape" 60 0 heap --format html -o "$SCRATCH/page.html" "$dump"
        grep -q "^heapwright heap: $shape.heap: $(sed ':a; s/\([0-9]\)\([0-9]\{3\}\)\($\|,\)/\1,\2\3/; ta' <<<$objects) objects" "$SCRATCH/said" ||
            die "$shape: the sums are not there"
        row "$shape: bytes an object in the file" 16 B "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$dump") / $objects }")"
        row "$shape: the page" 4 MiB "$(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$SCRATCH/page.html") / 1048576 }")"
        rm "$dump"
    done
}

limit() {
    local rounds=10 quick='' root limit program names libraries peer at bytes seconds name ended saved=0 way file pressure
    case ${1:-} in
        --quick) rounds=2 quick=1 ;;
        --rounds) [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || usage "'${2:-}' is no number of rounds"; rounds=$2 ;;
    esac
    group=
    for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        mkdir "$root/heapwright-$$" 2>/dev/null || continue
        group=$root/heapwright-$$
        limit=$group/memory.limit_in_bytes
        [ -e "$limit" ] || limit=$group/memory.max
        if [ -w "$limit" ] && echo 384M >"$limit" 2>/dev/null; then break; fi
        rmdir "$group"
        group=
    done
    [ -n "$group" ] || { say "skip: no control group with a memory limit can be made here"; return 0; }
    trap 'rmdir "$group" 2>/dev/null; tidy' EXIT
    preload_library
    library=$(realpath "$HEAPWRIGHT_SO")
    for program in load grow pressure; do cc -O2 -Wall -Wextra -fno-builtin -pthread -o "$SCRATCH/$program" "bench/limit/$program.c"; done

    # within BYTES PRELOAD OPTIONS COMMAND...: runs it under this limit. The subshell moves itself into the group.
    within() {
        echo "$1" >"$limit"
        (echo "$BASHPID" >"$group/cgroup.procs"; HEAPWRIGHT=$3 LD_PRELOAD=$2 exec timeout 60 "${@:4}")
    }
    names=(heapwright) libraries=("$library")
    if [ -z "$quick" ]; then
        names+=(glibc) libraries+=("")
        for peer in target/race/peers/lib{mimalloc,rpmalloc,snmalloc}.so "/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2"; do
            [ ! -e "$peer" ] || { names+=("$(basename "${peer%%.so*}")") libraries+=("$(realpath "$peer")"); }
        done
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
    printf '350 MB live in 384 MB, %s rounds\n%-12s %10s %14s %14s\n' "$rounds" allocator ended "seconds" "without limit"
    for name in "${names[@]}"; do
        ended=$(grep -vc killed "$SCRATCH/$name.384M") || true
        printf '%-12s %7s/%-3s %13s %14s\n' "$name" "$ended" "$rounds" "$(of_ended "$SCRATCH/$name.384M")" "$(of_ended "$SCRATCH/$name.8G")"
        [ "$name" != heapwright ] || [ "$ended" = "$rounds" ] || status=1
    done

    for way in 0 1 2 3 4 5 6 7 8 9; do
        # Tries twice: on a busy machine the kernel may end the program before its profile is written.
        for _ in 1 2; do
            rm -f "$SCRATCH"/profile.*
            within 256M "$library" "sample=512k,profile=$SCRATCH/profile" "$SCRATCH/grow" $way >/dev/null 2>&1 || true
            for file in "$SCRATCH"/profile.*; do [ ! -s "$file" ] || { saved=$((saved + 1)); break 2; }; done
        done
    done 2>/dev/null
    printf 'killed at 256 MB, in ten ways: %s of 10 left a heap profile\n' $saved
    [ $saved -ge 9 ] || status=1

    [ -r /proc/pressure/memory ] || return 0
    {
        within 32M "" "" "$SCRATCH/pressure" thrash "$SCRATCH/file" &
        pausing() { HEAPWRIGHT=purge=60000$1 LD_PRELOAD=$library "$SCRATCH/pressure" pause >"$SCRATCH/pause$1"; }
        pausing ,limit=off & at=$!
        pausing ""
        wait $at
        pressure=$(sed -n 's/^some avg10=\([0-9]*\).*/\1/p' /proc/pressure/memory)
        pkill -f "$SCRATCH/pressure thrash" || true
        wait
    } 2>/dev/null
    printf 'under pressure (%s %% of the time), 100 MB freed: %s MB left after 7 s, %s with limit=off\n' \
        "$pressure" "$(cat "$SCRATCH/pause")" "$(cat "$SCRATCH/pause,limit=off")"
    # Without pressure there is no verdict: on a large machine no thread may have to wait for memory.
    [ "$pressure" -lt 10 ] || [ "$(cat "$SCRATCH/pause")" -lt 50 ] || status=1
}

case ${1:-} in
    describe | startup | report | heap | limit) "$@"; exit $status ;;
esac

usage() { die "$1; usage: ci/bounds.sh [describe | startup | report | heap | limit | --cache MODEL] [--with NAME=PATH | --with glibc]... [--only flat,orphans,giveback,idle,crowd,periodic]"; }
names=(heapwright) preloads=('') only='' model=auto
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

preload_library
preloads[0]="HEAPWRIGHT=cache=$model $HEAPWRIGHT_SO"
for program in flat orphans giveback idle crowd periodic; do
    cc -O2 -Wall -Wextra -pthread -o "$SCRATCH/$program" bench/bounds/$program.c
done

check() { # NAME PRELOAD: whether PRELOAD (with settings before it, or none) takes effect
    local path=${2##* }
    [ -z "$path" ] && return
    [ -f "$path" ] || die "$1: there is no library at '$path'"
    LD_PRELOAD=$path cat /proc/self/maps | grep -qF "$(realpath "$path")" || die "$1: $path is not taken as a preload"
}
for i in "${!names[@]}"; do check "${names[i]}" "${preloads[i]}"; done

failures=0
printf '| figure | asked | heapwright | verdict |'
printf ' %s |' "${names[@]:1}"
printf '\n|---|--:|--:|---|'
for name in "${names[@]:1}"; do printf -- '--:|'; done
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
            cells+=$(sed -n "${row}p" "$SCRATCH/column.$i" | awk -F'\t' '{ printf " %s |", $2 "" ($3 > 0 && $2 + 0 > $3 + 0 ? "!" : "") }')
        done
        echo "| $name, $unit | $limit | $measured | $verdict |$cells"
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
