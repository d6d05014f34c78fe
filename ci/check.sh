#!/usr/bin/env bash
# Measures `heapwright check` beside valgrind's memcheck and AddressSanitizer: its cost, the findings of each, and how
# long a leak check stops a program. Prints tables of medians, and the targets with the measured figures (bench/check).
#
#   ci/check.sh [--quick [--valgrind] | --no-valgrind] [--rounds N] [SECTION...]    (without a section, all)
#   ci/check.sh report       the tables of docs/check-figures.md again, from the results of the last runs
#
#   programs  real programs: plain, checked, checked without guards, under memcheck
#   short     1,000 short processes: a build (make -j2) and a shell script, plain and checked
#   asan      programs that are built here: plain, checked, under memcheck, with AddressSanitizer;
#             and the findings of each tool in some programs of corpus/
#   snapshot  three leak checks of a program with 1 GiB of live blocks, each requested by a signal; one run
#
# ci/debug.sh explains rounds, results and --quick. There are 5 rounds. The target folder's check-figures/ keeps the
# results. --quick also leaves out programs whose sources have to be fetched, unless they are built already.
#
#   HEAPWRIGHT     the command to measure (default: built from this checkout)
#   CHECK_OPTIONS  words between `check` and `--`, if any
set -euo pipefail
COMMAND=${HEAPWRIGHT:-}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup check
. ci/figures.sh

SECTIONS=(programs short asan snapshot)
figures_begin check-figures check- bench/check/figures.txt "$@"
WORK=$CARGO_TARGET_DIR/check-work
mkdir -p "$WORK"

PEERS=$(cc --version 2>/dev/null | sed -n '1s/ (.*) / /p')
! command -v valgrind >/dev/null || PEERS+=", $(valgrind --version)"

# Leaks are counted apart from errors.
VALGRIND=(--leak-check=full --errors-for-leak-kinds=none --num-callers=16 --trace-children=yes
    '--trace-children-skip=*redis-cli,*redis-benchmark')
# With a finding, the sanitizer ends with the same status as the command.
ASAN=(ASAN_OPTIONS=exitcode=99:detect_leaks=1)

prepare_command() {
    [ -z "${CHECK:-}" ] || return 0
    if [ -z "$COMMAND" ]; then
        cargo build --quiet --release --locked -p heapwright-cli
        COMMAND=$CARGO_TARGET_DIR/release/heapwright
    fi
    local path
    path=$(command -v "$COMMAND") || die "no command $COMMAND"
    COMMAND=$path
    prepare_launcher
    # shellcheck disable=SC2206
    CHECK=("$COMMAND" check ${CHECK_OPTIONS:-})
    # Check must find this leak. Otherwise the figures would mislead.
    local status=0
    printf '#include <stdlib.h>\nchar *volatile p;\nint main(void) { p = malloc(123); p = 0; return 0; }\n' >"$SCRATCH/leaks.c"
    cc -O0 -o "$SCRATCH/leaks" "$SCRATCH/leaks.c"
    "${CHECK[@]}" -- "$SCRATCH/leaks" >"$SCRATCH/said" 2>&1 || status=$?
    if [ $status -ne 99 ] || ! grep -q 'definitely lost: 123 bytes in 1 blocks' "$SCRATCH/said"; then
        cat "$SCRATCH/said" >&2
        die "check does not find a leak of 123 bytes (it ends with $status)"
    fi
}

section_programs() {
    prepare_command
    real_programs
    local name line words
    while IFS= read -r line; do
        IFS=$'\t' read -ra words <<<"$line"
        name=${words[0]}
        planned programs "$name" glibc 0 "${words[@]:1}"
        # Such a program may have leaks, but no errors.
        planned_behind "${CHECK[@]}" --fail-on errors -- :: programs "$name" heapwright 0 "${words[@]:1}"
        planned_behind "${CHECK[@]}" --fail-on errors --guard never -- :: programs "$name" 'heapwright guard=never' 0 "${words[@]:1}"
        valgrind_planned programs "$name" valgrind 1 "${words[@]:1}"
    done <"$SCRATCH/programs"
    run_plan 5
}

section_short() {
    prepare_command
    bench/check/tree.sh "$WORK" "$(sized 334 10)" >"$SCRATCH/short"
    local words
    while IFS=$'\t' read -ra words; do
        planned short "${words[0]}" glibc 0 - "${words[@]:1}"
        planned_behind "${CHECK[@]}" --fail-on errors -- :: short "${words[0]}" heapwright 0 - "${words[@]:1}"
    done <"$SCRATCH/short"
    run_plan 5
}

section_asan() {
    prepare_command
    bench/check/prepare.sh "$WORK" "$(sized full quick)" >"$SCRATCH/built"
    [ -s "$SCRATCH/built" ] || die "no program could be built"
    local name line words
    while IFS= read -r line; do
        IFS=$'\t' read -ra words <<<"$line"
        name=${words[0]}
        planned asan "$name" glibc 0 - "${words[1]}" "${words[@]:3}"
        planned_behind "${CHECK[@]}" -- :: asan "$name" heapwright 0 - "${words[1]}" "${words[@]:3}"
        planned asan "$name" asan 0 - "${ASAN[@]}" "${words[2]}" "${words[@]:3}"
        valgrind_planned asan "$name" valgrind 1 - "${words[1]}" "${words[@]:3}"
    done <"$SCRATCH/built"
    run_plan 5
    tools
}

# Programs of corpus/ for most headings; in leaks/ the bug is a leak. Programs that read wrongly use the value, because
# memcheck ignores a read that no result depends on.
TOOLS=(buffer-overflow-by-one.c buffer-overflow-read-by-one.c buffer-underflow-by-one.c double-free-list.c
    interior-free-moved-cursor.c invalid-free-stack.c allocator-mismatch-new-array-delete.cc write-after-free-middle.c
    use-after-free-list-next.c use-after-free-vector-iterator.cc use-after-free-dispatch.c realloc-after-free-direct.c
    leaks/overwritten.c leaks/doubly-linked.c leaks/map-of-strings.cc leaks/thread-local.c)

says() { # TOOL error|leak PROGRAM ARGUMENTS...: prints 1 if the tool finds an error or a leak, else 0
    local tool=$1 leak=$2 status=0
    shift 2
    case $tool in
        glibc) ;;
        heapwright*)
            local options=()
            [ "$tool" = heapwright ] || options=(--guard all)
            if [ "$leak" = leak ]; then options+=(--fail-on leaks); else options+=(--fail-on errors); fi
            set -- "${CHECK[@]}" "${options[@]}" -- "$@"
            ;;
        valgrind)
            local kinds=none
            [ "$leak" != leak ] || kinds=definite
            set -- valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=$kinds "$@"
            ;;
        asan) set -- env "ASAN_OPTIONS=exitcode=99:detect_leaks=$([ "$leak" = leak ] && echo 1 || echo 0)" "$@" ;;
    esac
    (ulimit -c 0 && exec timeout -k 1 60 "$@") >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || status=$?
    # A plain program shows its bug by a signal.
    case $tool in
        glibc) echo $((status > 128)) ;;
        *) echo $((status == 99)) ;;
    esac
}

tools() {
    local source path name leak size kind compiler flags tool columns=(glibc heapwright 'heapwright guard=all' asan) found
    [ -z "$slow" ] || ! command -v valgrind >/dev/null || columns+=(valgrind)
    mkdir -p "$WORK/corpus"
    for source in "${TOOLS[@]}"; do
        path=corpus/$source
        [ -f "$path" ] || { say "skip: there is no $path"; continue; }
        name=${source%.*} leak=error
        [ "${name#leaks/}" = "$name" ] || leak=leak
        size=$(sed -n 's,^// sizes: \([0-9]*\).*,\1,p' "$path" | head -1)
        flags=$(sed -n 's,^// flags: ,,p' "$path" | head -1)
        compiler=(cc -std=gnu11)
        [ "${path##*.}" = c ] || compiler=(c++ -std=c++17)
        for kind in bad twin; do
            local define=()
            [ $kind = twin ] || define=(-DBAD)
            # shellcheck disable=SC2086
            "${compiler[@]}" -O1 -g -w -fno-builtin -I corpus "${define[@]}" -o "$SCRATCH/$kind" $flags "$path" -rdynamic -ldl -pthread
            # shellcheck disable=SC2086
            "${compiler[@]}" -O1 -g -w -fno-builtin -I corpus -fsanitize=address "${define[@]}" -o "$SCRATCH/$kind.asan" $flags "$path" -rdynamic -ldl -pthread
        done
        for tool in "${columns[@]}"; do
            for kind in bad twin; do
                found=$(says "$tool" $leak "$SCRATCH/$kind$([ "$tool" != asan ] || echo .asan)" ${size:+"$size"})
                if [ $kind = bad ]; then note tools "$name" "$tool" finds "$found"; else note tools "$name" "$tool" findings "$found"; fi
            done
        done
    done
}

section_snapshot() {
    prepare_command
    preload_library
    local mib pause row status=0 line name value check record
    mib=$(sized 1024 64) pause=$(sized 4000 1000)
    row=$(sized '1 GiB' '64 MiB')
    cc -std=gnu11 -O2 -g -Wall -Wextra -pthread bench/check/snapshot.c -o "$WORK/snapshot"
    env "LD_PRELOAD=$HEAPWRIGHT_SO" "HEAPWRIGHT=mode=debug,quiet=yes,record=$SCRATCH/record,leak_signal=USR1" \
        "$WORK/snapshot" "$mib" 3 "$pause" >"$SCRATCH/out" 2>"$SCRATCH/err" || status=$?
    if [ $status -ne 0 ] || [ -s "$SCRATCH/err" ]; then cat "$SCRATCH/err" >&2; die "snapshot ended with $status"; fi
    while read -r _ name value check; do note snapshot "$row" heapwright "$name" "$value" "${check:-1}"; done < <(grep '^figure ' "$SCRATCH/out")
    record=$(echo "$SCRATCH"/record.*)
    for check in 1 2 3; do
        "$COMMAND" report --format json --at $check -o "$SCRATCH/told" "$record" || [ $? -eq 1 ]
        # The one right finding is the leak of 123 bytes.
        python3 - "$SCRATCH/told" $check >"$SCRATCH/check" <<'PYTHON'
import json, sys
told = json.load(open(sys.argv[1]))
check = next(c for c in told["processes"][0]["checks"] if c["number"] == int(sys.argv[2]))
summary = told["summary"]
lost = [summary[kind] for kind in ("definitely_lost", "indirectly_lost", "possibly_lost")]
right = [(kind["blocks"], kind["bytes"]) for kind in lost] == [(1, 123), (0, 0), (0, 0)]
print("stopped_ms", check["stopped_ns"] / 1e6)
if check["took_ns"] is not None:
    print("took_s", check["took_ns"] / 1e9)
print("blocks", check["live"]["blocks"])
print("findings", 0 if right and not summary["errors"] else 1)
PYTHON
        while read -r name value; do note snapshot "$row" heapwright "$name" "$value" $check; done <"$SCRATCH/check"
    done
}

figures_end
