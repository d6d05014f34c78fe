#!/usr/bin/env bash
# Imports point downward only. Each module of heapwright and of its substrate may name only modules below its own line
# in ARCHITECTURE.md's picture of the floors, and lies in the crate of its floor. (Cargo keeps the other crates apart.)
# Inside a module files may import each other, but a part's largest circle of files may not grow (ci/circles.txt).
#
#   ci/floors.sh             verifies both; ci/floors.py says what an import is
#   ci/floors.sh --record    writes the numbers that fell
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup floors

floors() { python3 ci/floors.py floors ARCHITECTURE.md "$@"; }
for crate in heapwright heapwright-substrate; do
    floors $crate crates/$crate/src || die "imports must point downward"
done

# part MOST SOURCES [MODULE]: prints a part's line of ci/circles.txt. Returns 1 if its circle is larger.
part() {
    local size files
    read -r size files < <(python3 ci/floors.py circle "${@:2}")
    printf '%d %s\n' $((size < $1 ? size : $1)) "${*:2}"
    [ "$size" -gt "$1" ] || return 0
    say "FAIL ${*:2}: a circle of $size files, at most $1 may be in one: $files" >&2
    return 1
}
status=0
while read -r most words; do
    # shellcheck disable=SC2086 # a folder and a module
    if [ "$most" = '#' ]; then say "# $words"; else part "$most" $words || status=1; fi
done <ci/circles.txt >"$SCRATCH/circles"

# Proves that both checks can fail. A module of the lowest floor names the highest floor in each way, or lies in the wrong
# crate; three files import each other.
wrong() { # CRATE FILE TEXT: the picture refuses a file of the crate with this text
    mkdir -p "$SCRATCH/src/${2%/*}"
    printf '%s\n' "$3" >"$SCRATCH/src/$2"
    if floors "$1" "$SCRATCH/src" >/dev/null; then die "not seen: $2: $3"; fi
    rm -r "$SCRATCH/src"
}
for text in 'use crate::registry;' 'use crate::{digits, registry::Shared};' 'fn f() { super::super::registry::g() }' \
    'use super::{super::registry as r, linux};'; do
    wrong heapwright-substrate os/wrong.rs "$text"
done
wrong heapwright-substrate heap/wrong.rs ''
mkdir -p "$SCRATCH/src/heap"
printf 'mod a;\nmod b;\nmod c;\nuse c::Thing;\n' >"$SCRATCH/src/heap/mod.rs"
printf 'use super::{b::{self, F}, d};\n' >"$SCRATCH/src/heap/a.rs"
printf 'fn f() { super::Thing::new() }\n' >"$SCRATCH/src/heap/b.rs"
printf 'use crate::heap::a;\n#[cfg(test)]\nmod tests {\nuse super::super::d;\n}\n' >"$SCRATCH/src/heap/c.rs"
[ "$(python3 ci/floors.py circle "$SCRATCH/src" heap)" = "3 heap::a heap::b heap::c" ] || die "a circle is not seen"

[ $status -eq 0 ] || exit 1
[ "${1:-}" != --record ] || cp "$SCRATCH/circles" ci/circles.txt
diff "$SCRATCH/circles" ci/circles.txt >/dev/null || say "note: a circle is smaller (ci/floors.sh --record)"
say "imports point downward; circles of files: $(grep -v '^#' "$SCRATCH/circles" | awk '{ printf "%s%s %s", sep, $3 ? $3 : "gc", $1; sep = ", " }')"
