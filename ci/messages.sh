#!/usr/bin/env bash
# What the compiler says where something is missing for a realm: it must name what to do. Each of ci/messages is a program that
# does not compile, and its first lines are what must be said; one compiles, and runs.
#
#   ci/messages.sh [NAME...]     e.g. ci/messages.sh field
#
# What must be said is looked for with all white space as one space, for a compiler wraps lines as it likes. Of what it says itself
# only the sentences are compared that this library writes, or that are a trait's name.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# manifest FEATURES: a package of its own, whose lock is ours.
manifest() {
    cat >"$SCRATCH/Cargo.toml" <<END
[package]
name = "messages"
version = "0.0.0"
edition = "2024"
[dependencies]
heapwright = { path = "$ROOT/crates/heapwright", default-features = false, features = [$1] }
[workspace]
END
}
mkdir -p "$SCRATCH/src"
cp Cargo.lock "$SCRATCH"
export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/messages

failed=0
wrong() { say "$1: $2"; failed=1; }
count=0
for case in ci/messages/*.rs; do
    name=$(basename "$case" .rs)
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    count=$((count + 1))
    features='"derive", "std"'
    if grep -q '^//! features: none$' "$case"; then features=; fi
    manifest "$features"
    cp "$case" "$SCRATCH/src/main.rs"
    command=check
    if grep -q '^//! compiles' "$case"; then command=run; fi
    if cargo $command --quiet --manifest-path "$SCRATCH/Cargo.toml" >"$SCRATCH/said" 2>&1; then
        [ $command = run ] || wrong "$name" "it compiles"
        continue
    elif [ $command = run ]; then
        wrong "$name" "it does not compile or run"
        cat "$SCRATCH/said"
        continue
    fi
    tr -s '[:space:]' ' ' <"$SCRATCH/said" >"$SCRATCH/line"
    while read -r sentence; do
        if ! grep -qF -- "$sentence" "$SCRATCH/line"; then
            wrong "$name" "the compiler does not say: $sentence"
            cat "$SCRATCH/said"
        fi
    done < <(sed -n 's,^//! says: ,,p' "$case")
done
[ $count -gt 0 ] || die "there is no such case"
[ $failed -eq 0 ] || die "see above"
say "$count programs: the compiler says what to do"
