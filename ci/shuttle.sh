#!/usr/bin/env bash
# The registries on long random schedules of many threads (bench/schedules), under
# shuttle: what loom (ci/loom.sh) is too thorough to reach. Then the proof that this can
# fail: without what keeps two threads apart, it must.
#
#   ci/shuttle.sh [NUMBER]      so many schedules of each kind (default: 3000)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

NUMBER=${1:-3000}
# It says at each run that it knows no order but the strongest: so does the essay.
export SHUTTLE_SILENCE_WARNINGS=1

schedules() { # FOLDER NUMBER
    timeout 600 cargo run --quiet --release --locked --manifest-path "$1/bench/Cargo.toml" --target-dir "$2" -p schedules -- "$3"
}
schedules . "$CARGO_TARGET_DIR/bench" "$NUMBER"

say "without what keeps threads apart, a schedule must fail:"
mkdir "$SCRATCH/mutant"
tar cf - --exclude=./target --exclude=./.git --exclude='./*/target' . | tar xf - -C "$SCRATCH/mutant"
failures=0
# mutant FILE NAME PATTERN REPLACEMENT: replaces the first match in registry/FILE.
mutant() {
    local source=crates/heapwright/src/registry/$1 name=$2 pattern=$3 replacement=$4
    perl -0pe "s/$pattern/$replacement/" "$source" >"$SCRATCH/mutant/$source"
    if cmp -s "$source" "$SCRATCH/mutant/$source"; then
        printf 'FAIL %-44s the source has no such line any more\n' "$name"
        failures=$((failures + 1))
    elif schedules "$SCRATCH/mutant" "$SCRATCH/target" 300 >"$SCRATCH/out" 2>&1; then
        printf 'FAIL %-44s no schedule noticed\n' "$name"
        failures=$((failures + 1))
    elif grep -qE 'there are two holders|a mark was lost|somebody else left|deadlock|no such cache' "$SCRATCH/out"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %-44s does not build, or fails otherwise\n' "$name"
        tail -5 "$SCRATCH/out"
        failures=$((failures + 1))
    fi
    cp "$source" "$SCRATCH/mutant/$source"
}
mutant shared.rs "who waits does not wait" 'let got = slot\.wait\(\)' 'let got = true'
mutant shared.rs "a lock is given back unasked" 'while !self\.try_lock\(\) \{' 'while !self.try_lock() { self.state.store(FREE, GIVES);'
mutant common.rs "a shared object is entered without looking" 'if current\.try_lock\(\) \{' 'if { let _ = current.try_lock(); true } {'
mutant desks.rs "a desk is taken without looking" 'before & bit == 0' 'true'
[ $failures -eq 0 ] || die "$failures mutants survived"
