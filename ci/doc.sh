#!/usr/bin/env bash
# The documentation builds without a warning: broken links, missing pages, bad
# HTML. The library's as docs.rs builds them: with the features of its manifest, and a badge where one is needed.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export RUSTDOCFLAGS="-D warnings"
for package in heapwright-record heapwright-substrate heapwright-stacks heapwright-gc; do
    say "doc $package"
    features=()
    [ $package = heapwright-substrate ] && features=(--features debug)
    [ $package = heapwright-gc ] && features=(--features derive,std)
    cargo doc --quiet --locked --no-deps -p $package "${features[@]}"
done
say "doc heapwright"
features=$(sed -n '/^\[package.metadata.docs.rs\]/,/^$/s/^features = \[\(.*\)\]$/\1/p' crates/heapwright/Cargo.toml | tr -d '" ')
[ -n "$features" ] || die "the library's manifest names no features for docs.rs"
# What nightly compilers alone may do, docs.rs' does, too.
RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS="$RUSTDOCFLAGS --cfg docsrs" \
    cargo doc --quiet --locked --no-deps -p heapwright --features "$features" --target-dir "$CARGO_TARGET_DIR/docsrs"
grep -q 'Available on <strong>crate features\? <code>debug' "$CARGO_TARGET_DIR/docsrs/doc/heapwright/debug/index.html" ||
    die "the page of the debug heap does not say which feature it needs"
say "doc heapwright-cli"
# (The command and the library share a name: these pages replace the library's. They are built to
# be checked, not to be kept.)
cargo doc --quiet --locked --no-deps -p heapwright-cli --document-private-items
