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

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$work/made.h
"$cbindgen" --quiet --config "$crate/cbindgen.toml" --output "$made" "$crate"
# Rust's name for what a caller must see to.
sed -i "s/^ \* # Safety\$/ * The program's duties:/" "$made"

# C89 knows neither comments to the end of a line nor a comma behind an enum's last name.
sed -i -E 's,^(#endif|\}) +// (.*)$,\1 /* \2 */,' "$made"
perl -0777 -pi -e 's/,(\n\})/$1/g' "$made"

# Both headers are C from C89 to C23 and C++ from C++11 to C++23 by themselves, without a warning. (GCC up to 13 knows the last
# two by their drafts' names.)
cp "$made" "$work/heapwright.h"
cp include/heapwright_gc.h "$work/"
known() { "$1" -std="$2" -fsyntax-only -x "$3" /dev/null 2>/dev/null; }
for header_name in heapwright.h heapwright_gc.h; do
    for standard in c89 c99 c11 c17 c2x c23; do
        known "${CC:-cc}" $standard c || continue
        "${CC:-cc}" -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c -include "$work/$header_name" /dev/null
    done
    for standard in c++11 c++14 c++17 c++20 c++2b c++23; do
        known "${CXX:-c++}" $standard c++ || continue
        "${CXX:-c++}" -std=$standard -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -include "$work/$header_name" /dev/null
    done
done

if [ "${1:-}" = --write ]; then
    cp "$made" "$header"
    chmod 644 "$header"
elif ! diff -u "$header" "$made"; then
    echo "ci/header.sh: $header is not what the sources say; run ci/header.sh --write" >&2
    exit 1
fi
