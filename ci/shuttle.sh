#!/usr/bin/env bash
# The registries on long random schedules of many threads (bench/policies/src/schedules), under
# shuttle: what loom (ci/loom.sh) is too thorough to reach. Then the proof that this can
# fail: without what keeps two threads apart, it must.
#
#   ci/shuttle.sh [NUMBER]      so many schedules of each kind (default: 3000)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/mutants.sh

NUMBER=${1:-3000}
# It says at each run that it knows no order but the strongest: so does the essay.
export SHUTTLE_SILENCE_WARNINGS=1

schedules() { # FOLDER NUMBER
    timeout 600 cargo run --quiet --release --locked --manifest-path "$1/bench/Cargo.toml" --target-dir "$2" -p policies --features schedules --bin schedules -- "$3"
}
schedules . "$CARGO_TARGET_DIR/bench" "$NUMBER"

say "without what keeps threads apart, a schedule must fail:"
run_mutant() { schedules "$SCRATCH/mutant" "$SCRATCH/target" 300; }
is_noticed() { grep -qE 'there are two holders|a mark was lost|somebody else left|deadlock|no such cache' "$1"; }
copy_tree
mutant registry/shared.rs "a thread that waits does not wait" 'let got = slot\.wait\(\)' 'let got = true'
mutant registry/shared.rs "a lock is given back unasked" 'while !self\.try_lock\(\) \{' 'while !self.try_lock() { self.state.store(FREE, GIVES);'
mutant registry/common.rs "a shared object is entered without looking" 'if current\.try_lock\(\) \{' 'if { let _ = current.try_lock(); true } {'
mutant registry/thread_index.rs "an index is taken without looking" 'before & bit == 0' 'true'
all_noticed
