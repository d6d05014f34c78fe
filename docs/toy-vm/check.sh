#!/usr/bin/env bash
# The tutorial of the collected heap (docs/gc.md) and its program (toy.c). The program has every C block of
# the page unchanged. It compiles from an installed tree as C99 without a warning, and heapwright_gc.h also as
# C++. It prints the page's output: in all layouts, in one step and in the smallest, with a collection at every
# allocation, verified, with a scanned stack, moving; and without a collector, except for the file that nobody
# closes. Its dump, read by `heapwright heap`, has the page's types and sizes. A program that omits a duty is
# caught as the page says.
#
#   docs/toy-vm/check.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
setup toy-vm

preload_library
toy=docs/toy-vm/toy.c
library=$(dirname "$HEAPWRIGHT_SO")

python3 - docs/gc.md $toy <<'PYTHON'
import re, sys
page, source = (open(path).read() for path in sys.argv[1:])
blocks = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
strange = [block for block in blocks if block not in source]
for block in strange:
    print("not in the program:\n" + block)
sys.exit(f"{len(strange)} of {len(blocks)} blocks of {sys.argv[1]} are not in {sys.argv[2]}" if strange or not blocks else 0)
PYTHON

# The page's block of the program's output begins with the command.
sed -n '/^\$ toy$/,/^```/{/^\$/d;/^```/d;p}' docs/gc.md >"$SCRATCH/want"
[ -s "$SCRATCH/want" ] || die "docs/gc.md does not say what the toy prints"

STRICT=(-std=c99 -O2 -g -Wall -Wextra -Wpedantic -Werror)
# From an installed tree, as a reader of the page has it: headers, library, and pkg-config's
# file.
HEAPWRIGHT_LIBRARY_DIR=$library sh packaging/install.sh "$SCRATCH/usr" >"$SCRATCH/installed" 2>&1 || { cat "$SCRATCH/installed" >&2; die "it does not install"; }
read -ra LINKED < <(PKG_CONFIG_PATH=$SCRATCH/usr/lib/pkgconfig pkg-config --cflags --libs heapwright)
LINKED+=(-Wl,-rpath,"$SCRATCH/usr/lib" -pthread)
cc "${STRICT[@]}" $toy -o "$SCRATCH/toy" "${LINKED[@]}"
cc "${STRICT[@]}" -I docs/toy-vm/without $toy -o "$SCRATCH/toy-without" -pthread
# Without a collector nobody closes the file.
"$SCRATCH/toy-without" small | sed 's/^1 files are open$/0 files are open/' >"$SCRATCH/want-small"
printf '#include <heapwright_gc.h>\nint main() { return 0; }\n' |
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$SCRATCH/usr/include" -x c++ -

runs=0
prints() { # WANTED WORDS...
    local wanted=$1 status=0
    shift
    timeout 300 "$SCRATCH/toy" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" || status=$?
    if [ $status -ne 0 ] || [ -s "$SCRATCH/err" ] || ! diff "$SCRATCH/$wanted" "$SCRATCH/out"; then
        cat "$SCRATCH/err" >&2
        die "toy $* ends with $status or does not print what docs/gc.md says"
    fi
    runs=$((runs + 1))
}
for layout in fine ruby powers single; do
    for words in "" at-once scan verify "verify at-once" "verify scan" generations "generations verify at-once" \
        moving "generations moving" "scan moving"; do
        # shellcheck disable=SC2086
        prints want $layout $words
    done
    for words in stress "stress verify" "stress at-once" "stress verify scan" "crumbs verify" "crumbs verify generations" \
        "stress moving" "stress verify moving" "crumbs verify moving" "crumbs verify generations moving"; do
        # shellcheck disable=SC2086
        prints want-small $layout small $words
    done
done

# With few objects in a page, few stay because of a neighbour: only where slots are this wide.
for layout in fine powers; do
    for words in "stress moving" "stress generations moving" "stress crumbs verify moving" "crumbs generations moving"; do
        # shellcheck disable=SC2086
        prints want-small $layout small wide $words
    done
done

"$SCRATCH/toy-without" >"$SCRATCH/out"
diff <(sed 's/^0 files are open$/1 files are open/' "$SCRATCH/want") "$SCRATCH/out" || die "the toy without a collector prints something else"

# From a program's heap to the command: the page's tables are its output for this dump.
cargo build --quiet --locked -p heapwright-cli
heapwright=$CARGO_TARGET_DIR/debug/heapwright
(cd "$SCRATCH" && ./toy dump >out && "$heapwright" heap --format html -o heap.html toy.heap >told)
tables() { sed -n '/^by type /,/^  and .* empty$/{/empty$/d;p}' "$1"; }
[ -n "$(tables docs/gc.md)" ] || die "docs/gc.md has no tables of a dump"
diff <(tables docs/gc.md) <(tables "$SCRATCH/told") || die "docs/gc.md does not show what heapwright heap prints of toy.heap"
grep -q '^ *root handle #1 -> pair 0x' "$SCRATCH/told" || die "heapwright heap names no path from the root"
python3 - "$SCRATCH/heap.html" <<'PYTHON'
import sys
from html.parser import HTMLParser
page = open(sys.argv[1]).read()
HTMLParser().feed(page)
for part in ("pair", "symbol", "closure", "</svg>"):
    if part not in page:
        sys.exit(f"the page of toy.heap has no {part}")
PYTHON
runs=$((runs + 1))

# Omitted duties, and what finds each omission (docs/gc.md, "When a duty is left out").
caught() { # NAME SED-SCRIPT MESSAGE WORDS...
    local name=$1 script=$2 message=$3 status=0
    shift 3
    sed "$script" $toy >"$SCRATCH/$name.c"
    ! cmp -s "$SCRATCH/$name.c" $toy || die "$name: nothing was left out"
    cc -std=c99 -O2 -w "$SCRATCH/$name.c" -o "$SCRATCH/$name" "${LINKED[@]}"
    # In a group, to catch the shell's own line about the program's end.
    { (ulimit -c 0 && exec timeout 300 "$SCRATCH/$name" "$@") >"$SCRATCH/out" 2>"$SCRATCH/err" || status=$?; } 2>/dev/null
    if [ $status -eq 0 ] || ! grep -q "$message" "$SCRATCH/err"; then
        cat "$SCRATCH/err" >&2
        die "$name: ended with $status and did not say: $message"
    fi
    runs=$((runs + 1))
}
caught barrier 's|hw_gc_write(t->mutator, a\[0\], slot(a), a\[2\]);|*slot(a) = a[2];|' \
    'which is not marked: it was stored there without the write barrier' crumbs verify small wide
caught root '/^static value cons/,/^}/{/push(t, d);/d;s/t->depth -= 2/t->depth -= 1/}' \
    'which is no object: it was freed, or never allocated' stress verify small
caught slot 's|t->stack\[first - 1\] = rest = cdr(rest)|rest = cdr(rest)|' \
    'this should be a pair' stress moving wide small

say "ok: $runs runs"
