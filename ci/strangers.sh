#!/usr/bin/env bash
# Runs other projects' tests of malloc's public interface on heapwright. Each test runs first on the plain system, then
# preloaded, under three cache models and in debug mode. A test that passes on glibc and not on heapwright is a failure,
# unless corpus/strangers/differences.txt has a line with the reason. The sources are Debian's source packages, fetched
# into the target folder's strangers/. The first lines of each suite's file say which tests are left out.
#
#   ci/strangers.sh                        all suites: an hour and a half, or less
#   ci/strangers.sh glibc python           these suites
#   ci/strangers.sh glibc:tst-malloc       this test, or those of a pattern such as 'perl:op/s*'
#   ci/strangers.sh -l [SUITE...]          what would run
#
# A run passes if its command exits with 0 within its time and debug mode reports nothing. When the time is over, the
# stacks of the run's first eight processes go into its log, before all are ended.
#
# corpus/strangers/SUITE.sh defines suite_SUITE, which fetches and builds, and registers each test by
#   add NAME SECONDS COMMAND     the command is bash's, run in a folder of its own
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup strangers

SUITES=(glibc jemalloc mimalloc libgc stress-ng python perl ruby)
MODES=(exclusive shared percpu debug)
declare -A OPTIONS=([exclusive]= [shared]=cache=shared:2 [percpu]=cache=percpu [debug]=mode=debug)
JOBS=2 # at a time
DATA=$ROOT/corpus/strangers TABLE=$ROOT/corpus/strangers/differences.txt
WORK=$CARGO_TARGET_DIR/strangers # sources, what is built of them, logs
SOURCES=$WORK/sources LOGS=$WORK/logs
export TIMEOUTFACTOR=100 # glibc's tests would end themselves, without stacks, after 20 s

# --- what suites use ---------------------------------------------------------
NAMES=() SECONDS_OF=() COMMANDS=() SUITE_OF=()
add() { SUITE_OF+=("$SUITE"); NAMES+=("$1"); SECONDS_OF+=("$2"); COMMANDS+=("$3"); }

# --- one run -----------------------------------------------------------------
# stacks SESSION: prints the stacks of every thread of the session's first eight processes.
stacks() {
    local process
    for process in $(pgrep -s "$1" | head -8); do
        printf -- '--- process %s: %s\n' "$process" "$(tr '\0' ' ' <"/proc/$process/cmdline" | head -c 200)"
        timeout 60 gdb -p "$process" -batch -nx -ex 'set debuginfod enabled off' -ex 'thread apply all bt 24' 2>/dev/null |
            grep -E '^(Thread|#)' || true
    done
}

end() { pgrep -s "$1" | xargs -r kill -KILL 2>/dev/null || true; }

# run INDEX MODE: prints the verdict: pass, fail N, hang or finding. The mode "system" is without heapwright.
run() {
    local index=$1 mode=$2 code=0 session watch
    local log=$LOGS/${SUITE_OF[$1]}/${NAMES[$1]//\//_}.$2 folder=$SCRATCH/$1.$2 preload=()
    mkdir -p "$folder" "$(dirname "$log")"
    [ "$mode" = system ] || preload=("LD_PRELOAD=$HEAPWRIGHT_SO" "HEAPWRIGHT=${OPTIONS[$mode]}")
    # A shell's background jobs ignore SIGINT, which tests of signals want to get.
    (cd "$folder"; exec setsid env --default-signal TMPDIR="$folder" "${preload[@]}" bash -c "${COMMANDS[$index]}") >"$log" 2>&1 </dev/null &
    session=$!
    (
        # (A longer sleep would have to be killed, and might not have begun yet.)
        for ((fifths = 5 * SECONDS_OF[index]; fifths > 0; fifths--)); do
            [ ! -e "$folder.over" ] || exit 0
            sleep 0.2
        done
        { echo "--- no end after ${SECONDS_OF[$index]} s"; stacks $session; } >>"$log" 2>&1
        : >"$folder.hang"
        end $session
    ) &
    watch=$!
    wait $session 2>/dev/null || code=$?
    : >"$folder.over"
    wait $watch 2>/dev/null || true
    end $session
    rm -rf "$folder" "$folder.over"
    if [ -e "$folder.hang" ]; then echo hang
    elif [ $code -ne 0 ]; then echo "fail $code"
    elif grep -qa 'ERROR: heapwright' "$log"; then echo finding
    else echo pass; fi
}

# reason SUITE TEST MODE: prints the reason from the table, or nothing if there is no line.
reason() {
    awk -F '\t+' -v suite="$1" -v test="$2" -v mode="$3" \
        '!/^#/ && $1 == suite && $2 == test && ($3 == "all" || index("," $3 ",", "," mode ",")) { print $4; exit }' "$TABLE"
}

# judge INDEX: judges all runs of a test. Prints a line for people, and a line a mode into results.
judge() {
    local index=$1 suite=${SUITE_OF[$1]} name=${NAMES[$1]} mode verdict why start=$SECONDS line=
    verdict=$(run "$index" system)
    if [ "$verdict" != pass ]; then
        printf 'no   %-9s %-36s not on glibc either: %s\n' "$suite" "$name" "$verdict"
        echo "neither	$suite	$name" >>"$SCRATCH/results"
        return
    fi
    local word=ok kind
    for mode in "${MODES[@]}"; do
        verdict=$(run "$index" "$mode")
        why=$(reason "$suite" "$name" "$mode")
        case $verdict,$why in
            pass,) kind=passed ;;
            pass,*) kind=failed line+=" $mode: passes, but the table explains a failure;" ;;
            *,) kind=failed line+=" $mode: $verdict;" ;;
            *) kind=explained line+=" $mode: $verdict, explained;" ;;
        esac
        [ $kind != failed ] || word=FAIL
        printf '%s\t%s\t%s\t%s\n' $kind "$suite" "$name" "$mode" >>"$SCRATCH/results"
    done
    printf '%-4s %-9s %-36s %3d s%s\n' $word "$suite" "$name" $((SECONDS - start)) "${line:+ $line}"
}

# --- all of them -------------------------------------------------------------
list=
[ "${1:-}" = -l ] && { list=yes; shift; }
WANTED=("$@")
[ $# -gt 0 ] || WANTED=("${SUITES[@]}")
# wanted SUITE[:TEST]: whether an argument names it.
wanted() {
    local pattern
    for pattern in "${WANTED[@]}"; do
        # shellcheck disable=SC2053 # the argument may be a pattern
        [[ $1 == $pattern || ${1%%:*} == "$pattern" || ${pattern%%:*} == "$1" ]] && return 0
    done
    return 1
}
for pattern in "${WANTED[@]}"; do
    [ -f "$DATA/${pattern%%:*}.sh" ] || die "no suite named ${pattern%%:*}; suites: ${SUITES[*]}"
done

mkdir -p "$WORK" "$LOGS"
for SUITE in "${SUITES[@]}"; do
    wanted "$SUITE" || continue
    . "$DATA/$SUITE.sh"
    "suite_$SUITE"
done
for index in "${!NAMES[@]}"; do
    wanted "${SUITE_OF[$index]}:${NAMES[$index]}" || unset "NAMES[$index]"
done
[ ${#NAMES[@]} -gt 0 ] || die "no test named ${WANTED[*]}"
if [ "$list" ]; then
    for index in "${!NAMES[@]}"; do printf '%-9s %-36s %s\n' "${SUITE_OF[$index]}" "${NAMES[$index]}" "${COMMANDS[$index]}"; done
    exit 0
fi

preload_library
for mode in "${MODES[@]}"; do
    # A preload that did not take effect would pass every test.
    LD_PRELOAD=$HEAPWRIGHT_SO HEAPWRIGHT=${OPTIONS[$mode]} grep -q "$HEAPWRIGHT_SO" /proc/self/maps ||
        die "$HEAPWRIGHT_SO is not loaded in mode $mode"
done
: >"$SCRATCH/results"
running=0
for index in "${!NAMES[@]}"; do
    [ $running -lt $JOBS ] || { wait -n; running=$((running - 1)); }
    judge "$index" &
    running=$((running + 1))
done
wait
count() { grep -c "^$1	" "$SCRATCH/results" || true; }
say "$(count passed) passed, $(count explained) explained, $(count failed) failed;" \
    "$(count neither) tests do not pass on glibc either; logs: $LOGS"
[ "$(count failed)" -eq 0 ]
