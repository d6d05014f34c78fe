#!/usr/bin/env bash
# Runs every test of threads many times, under load, because a test that fails once in a thousand runs shows a bug.
#
#   ci/repeat.sh [TIMES [WORD...]]     TIMES runs of each row (default: 20); only rows whose name has one of the words
#   REPEAT_PATIENCE=900                the most seconds for one run of a row; a busy machine is ten times as slow
#
# Files under tests/ count if they start threads, fork, or have a collected heap, whose helpers are threads. Unit tests
# count if their module's files do so, and in heapwright-gc always. A suite of malloc counts if one of its programs does
# so. Its runs take the cache models in turns, unless the suite names models itself. Two busy processes run beside, so
# that threads are interrupted anywhere. The target folder's repeat/ keeps the output of failed runs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup repeat

TIMES=${1:-20}
[[ $TIMES =~ ^[1-9][0-9]*$ ]] || die "TIMES is '$TIMES'; it can be 1 or more"
shift $(($# < 1 ? $# : 1))
PATTERN=$(IFS='|'; echo "$*")
KEPT=$CARGO_TARGET_DIR/repeat
rm -rf "$KEPT"
mkdir -p "$KEPT"
preload_library
HEAPWRIGHT_TEST_LIBRARY=$(dirname "$HEAPWRIGHT_SO")
export HEAPWRIGHT_TEST_LIBRARY

THREADS='thread::(spawn|scope|Builder)|pthread_create|std::thread|\bfork\('

# words_of PACKAGE NAME: prints the words that select a program's tests of threads (nothing: all). Returns 1 if there
# are none. NAME is `lib`, or a file's name under tests/.
words_of() {
    local folder=crates/$1 file=crates/$1/tests/$2.rs
    if [ "$2" = lib ]; then
        [ "$1" != heapwright-gc ] || return 0
        # A file's module: src/debug/heap/mod.rs is debug::heap; src/pool/tests.rs, src/tests/pool.rs: pool::tests.
        (cd "$folder/src" && grep -rlE "$THREADS" --include='*.rs' .) | sed -E 's|^\./||; s|^tests/(.*)\.rs$|\1/tests.rs|; s|(/mod)?\.rs$||; s|/|::|g; s|$|::|' | sort -u | tr '\n' ' '
    elif [ "$1" = heapwright-malloc ]; then
        grep -oE '"[a-z_0-9]+\.cc?"' "$file" | tr -d '"' | sort -u | (cd "$folder/tests/programs" && xargs grep -lsE "$THREADS" >/dev/null)
    else
        grep -qE "$THREADS|heapwright::gc" "$file"
    fi
}
names=() folders=() programs=() words=() models=()
# built CARGO-OPTION...: a line for each test program: its package, `lib` or its name, and its path. The options are those
# of ci/test.sh, so that nothing is built twice.
built() {
    cargo test --quiet --locked --no-run --message-format=json "$@" | python3 -c '
import json, sys
for line in sys.stdin:
    told = json.loads(line)
    if told.get("executable") and told.get("profile", {}).get("test"):
        print(told["manifest_path"].split("/")[-2], told["target"]["name"] if told["target"]["kind"] == ["test"] else "lib", told["executable"])'
}
built "${LIBRARY[@]}" "${ALL[@]}" >"$SCRATCH/built"
built -p heapwright-malloc >>"$SCRATCH/built"
while read -r package name program; do
    [[ "$package $name" =~ ${PATTERN:-.} ]] || continue
    chosen=$(words_of "$package" "$name") || continue
    names+=("$package $name") folders+=("crates/$package") programs+=("$program") words+=("$chosen")
    models+=("$([ "$package" != heapwright-malloc ] || grep -q 'HEAPWRIGHT_TEST_CACHE\|cache=\|mode=' "crates/$package/tests/$name.rs" ||
        echo auto exclusive shared:2 percpu)")
done <"$SCRATCH/built"
[ ${#names[@]} -gt 0 ] || die "no such row"

run() { # ROW
    # shellcheck disable=SC2086 # words
    (cd "${folders[$1]}" && exec timeout --kill-after=5 "${REPEAT_PATIENCE:-900}" "${programs[$1]}" --quiet ${words[$1]}) >"$SCRATCH/out" 2>&1 </dev/null
}
# This compiles the tests' programs before the load starts, and before time counts.
for row in "${!names[@]}"; do [[ ${names[$row]} != heapwright-malloc* ]] || run "$row" || true; done

declare -A runs failed seconds
# Prints the table, also of a run that is interrupted.
table() {
    local row count
    printf '\n%-36s %6s %9s %9s\n' tests runs failures 's a run'
    for row in "${!names[@]}"; do
        count=${runs[$row]:-0}
        printf '%-36s %6d %9d %9d\n' "${names[$row]}" "$count" "${failed[$row]:-0}" $((${seconds[$row]:-0} / (count > 0 ? count : 1)))
    done
}
busy=()
for _ in 1 2; do (while :; do :; done) & busy+=($!); done
trap 'kill "${busy[@]}" 2>/dev/null || true; table; tidy' EXIT
trap 'exit 130' INT TERM HUP
all=0
for ((time = 0; time < TIMES; time++)); do
    for row in "${!names[@]}"; do
        unset HEAPWRIGHT_TEST_CACHE
        read -r -a turns <<<"${models[$row]}"
        [ ${#turns[@]} -eq 0 ] || export HEAPWRIGHT_TEST_CACHE=${turns[time % ${#turns[@]}]}
        before=$SECONDS status=0
        run "$row" || status=$?
        seconds[$row]=$((${seconds[$row]:-0} + SECONDS - before)) runs[$row]=$((${runs[$row]:-0} + 1))
        [ $status -ne 0 ] || continue
        failed[$row]=$((${failed[$row]:-0} + 1)) all=$((all + 1))
        kept=$KEPT/${names[$row]// /-}-$((time + 1)).txt
        { echo "status $status${HEAPWRIGHT_TEST_CACHE:+, cache=$HEAPWRIGHT_TEST_CACHE}"; cat "$SCRATCH/out"; } >"$kept"
        say "FAIL ${names[$row]}, run $((time + 1)), status $status: $kept"
        grep -aE '^    [a-z_0-9:]+$|panicked at' "$kept" | sort -u | head -4 | sed 's/^ */     /' || true
    done
done
[ $all -eq 0 ] || { say "FAIL: $all of $((TIMES * ${#names[@]})) runs; their output is in $KEPT"; exit 1; }
say "all $((TIMES * ${#names[@]})) runs ended well"
