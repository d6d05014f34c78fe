#!/bin/sh
# Makes include/heapwright.h from the sources and compares it with the one that
# is checked in. `ci/header.sh --write` replaces that one.
#
# Needs cbindgen 0.29: cargo install cbindgen --version '^0.29' --locked
set -eu
cd "$(dirname "$0")/.."

header=include/heapwright.h
crate=crates/heapwright-malloc
cbindgen=${CBINDGEN:-cbindgen}

if ! version=$("$cbindgen" --version 2>/dev/null); then
    echo "ci/header.sh: cbindgen is not installed; cargo install cbindgen --version '^0.29' --locked" >&2
    exit 1
fi
case $version in
    "cbindgen 0.29."*) ;;
    *)
        echo "ci/header.sh: $version makes another header than 0.29 does; install ^0.29" >&2
        exit 1
        ;;
esac

made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$cbindgen" --quiet --config "$crate/cbindgen.toml" --output "$made" "$crate"
# Rust's name for what a caller must see to.
sed -i "s/^ \* # Safety\$/ * The program's duties:/" "$made"

# The header must be C99, C11 and C++ by itself, without a warning.
for standard in c99 c11; do
    "${CC:-cc}" -std="$standard" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c "$made"
done
"${CXX:-c++}" -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$made"

if [ "${1:-}" = --write ]; then
    cp "$made" "$header"
    chmod 644 "$header"
elif ! diff -u "$header" "$made"; then
    echo "ci/header.sh: $header is not what the sources say; run ci/header.sh --write" >&2
    exit 1
fi
