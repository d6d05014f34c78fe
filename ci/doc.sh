#!/usr/bin/env bash
# The documentation builds without a warning: broken links, missing pages, bad
# HTML. With the features that the public builder uses.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

export RUSTDOCFLAGS="-D warnings"
for package in heapwright-record heapwright-substrate heapwright-stacks heapwright-gc heapwright; do
    say "doc $package"
    features=()
    [ $package = heapwright-substrate ] && features=(--features debug)
    [ $package = heapwright-gc ] && features=(--features derive,std)
    [ $package = heapwright ] && features=(--features allocator-api2-02,allocator-api2-03,allocator-api2-04,debug,derive,std)
    cargo doc --quiet --locked --no-deps -p $package "${features[@]}"
done
say "doc heapwright-cli"
# (The command and the library share a name: these pages replace the library's. They are built to
# be checked, not to be kept.)
cargo doc --quiet --locked --no-deps -p heapwright-cli --document-private-items
