#!/usr/bin/env bash
# Runs real programs (corpus/programs, whose prelude says how to write one):
#
#   ci/programs.sh [-v] [--with OPTIONS] [NAME...]
#                                 under the preload: the same output and exit status as without. -v shows the output
#   ci/programs.sh check [NAME...]  no false alarms: under `heapwright check` with its defaults no program has
#                                 an error, and each prints and ends as without it. (Their leaks are their own.)
#   ci/programs.sh more [NAME...]   as `check`, for 34 others: compilers, interpreters, servers. They need packages
#                                 of some 700 MB and ten minutes, so only ci/deep.sh runs them
#   ci/programs.sh leaks [NAME...]  a table of their leaks beside valgrind's. If heapwright calls a block
#                                 lost, valgrind must call it lost, too
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

FOLDER=$ROOT/corpus/programs
told() { sed -n "s/^# $2: //p" "$FOLDER/$1.sh"; }
way=preload verbose='' options='' names=()
while [ $# -gt 0 ]; do
    case $1 in
        check | more | leaks) way=$1 ;;
        -v) verbose=yes ;;
        --with) options=$2; shift ;;
        *) [ -f "$FOLDER/$1.sh" ] || die "there is no corpus/programs/$1.sh"; names+=("$1") ;;
    esac
    shift
done
if [ ${#names[@]} -eq 0 ]; then
    for file in "$FOLDER"/*.sh; do
        name=$(basename "$file" .sh)
        [[ " $(told "$name" ways) " != *" $way "* ]] || names+=("$name")
    done
fi
setup "$([ "$way" = more ] && echo more || echo programs)"

# An interpreter that has its own test suite: PATH's, or Debian's.
PYTHON=
if [[ " ${names[*]} " == *' python3'* ]]; then
    for candidate in python3 /usr/bin/python3; do
        PYTHON=$($candidate -c 'import sys, test.test_json, test.test_dict; print(sys.executable)' 2>/dev/null) && break
    done
    PYTHON=${PYTHON:-/usr/bin/python3}
fi
export PYTHON ROOT

# side NAME SIDE [VARIABLE=VALUE...]: runs the program in a folder of its own, with its output in files there.
PORT=$((20000 + RANDOM % 10000))
chmod 755 "$SCRATCH"
side() {
    local name=$1 folder=$SCRATCH/$1.$2 code=0
    mkdir -p "$folder/in"
    (
        cd "$folder/in"
        unset CDPATH
        exec env PORT=$((PORT + ${#2} % 2)) "${@:3}" timeout -k 5 "${PATIENCE:-240}" \
            bash -c '. "$ROOT/corpus/programs/prelude"; . "$0"' "$FOLDER/$name.sh"
    ) >"$folder/stdout" 2>"$folder/stderr" </dev/null || code=$?
    echo "exit status $code" >"$folder/status"
    # Folders, ports and addresses may differ, and the text that the program's `blank` removes.
    sed -E -i -e "s#$folder#FOLDER#g; s/\b($PORT|$((PORT + 1)))\b/PORT/g; s/0x[0-9a-f]{6,}/ADDRESS/g" -e "$(told "$name" blank)" "$folder"/std{out,err}
}
same() { # NAME SIDE OTHER PART...: the parts of both are equal, or the difference is shown
    local part status=0
    for part in "${@:4}"; do
        diff -U3 --label "$1, $2: $part" --label "$1, $3: $part" "$SCRATCH/$1.$2/$part" "$SCRATCH/$1.$3/$part" >"$SCRATCH/diff" ||
            { head -60 "$SCRATCH/diff" | sed 's/^/    /'; status=1; }
    done
    return $status
}

# Runs both sides at once. A preload that does not take effect would pass every comparison.
by_preload() {
    local name=$1 main
    eval "main=$(told "$name" main)"
    [[ $(LD_PRELOAD=$HEAPWRIGHT_SO LD_TRACE_LOADED_OBJECTS=1 "$(readlink -f "$(command -v "$main")")" 2>/dev/null || true) == *"$HEAPWRIGHT_SO"* ]] ||
        { say "    the preload does not take effect in $main"; return 1; }
    side "$name" with LD_PRELOAD="$HEAPWRIGHT_SO" ${options:+HEAPWRIGHT="$options"} &
    side "$name" without &
    wait
    [ -z "$verbose" ] || cat "$SCRATCH/$name.with"/std{out,err}
    [ -s "$SCRATCH/$name.without/stdout" ] && same "$name" without with status stdout stderr
}
# apart NAME SIDE...: runs a side without the user's settings, which git above all would read.
apart() { mkdir -p "$SCRATCH/$1.reports" "$SCRATCH/$1.home"; side "$@" REPORTS="$SCRATCH/$1.reports" HOME="$SCRATCH/$1.home" GIT_CONFIG_NOSYSTEM=1; }
by_check() {
    local reports=$SCRATCH/$1.reports
    apart "$1" plain
    rm -rf "$SCRATCH/$1.home"
    apart "$1" checked CHECK=checked
    [ -n "$(ls -A "$reports")" ] && ! grep -rqs 'ERROR: heapwright' "$reports" && same "$1" plain checked status stdout && return
    head -20 "$SCRATCH/$1.checked/stderr"
    grep -rhs -A12 'ERROR: heapwright' "$reports" | head -40
    return 1
}
by_leaks() {
    apart "$1" checked CHECK=checked_as_json
    rm -rf "$SCRATCH/$1.home"
    PATIENCE=1200 apart "$1" valgrind CHECK=in_valgrind
    [ -n "$(find "$SCRATCH/$1.reports" -name '*.json' -size +0)" ] || { say "FAIL $1: no report"; return 1; }
    python3 corpus/leaks/judge.py compare "$1" "$SCRATCH/$1.reports" || [ "$(told "$1" leaks)" = shown ]
}

case $way in
    preload) preload_library; by=by_preload ;;
    check | more) the_command; by=by_check ;;
    leaks)
        the_command
        by=by_leaks
        say '| program | definitely lost, blocks / bytes | valgrind | only we | stacks only valgrind reports |'
        say '|---|--:|--:|--:|--:|'
        ;;
esac
export HEAPWRIGHT_COMMAND=${HEAPWRIGHT_COMMAND:-}
failed=()
for name in "${names[@]}"; do
    start=$SECONDS verdict=ok
    $by "$name" >"$SCRATCH/said" || { verdict=FAIL; failed+=("$name"); }
    [ $way = leaks ] || printf '%-4s %-16s %3d s\n' $verdict "$name" $((SECONDS - start))
    cat "$SCRATCH/said"
    rm -rf "${SCRATCH:?}/$name".*
done
[ ${#failed[@]} -eq 0 ] || { say "FAIL: ${failed[*]}"; exit 1; }
[ $way = leaks ] || say "all ${#names[@]} programs behave as they should${options:+ with $options}"
