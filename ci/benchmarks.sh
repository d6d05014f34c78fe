#!/usr/bin/env bash
# Takes the numbers of docs/benchmarks.md again and writes them there, between
# the markers.
#
#   ci/benchmarks.sh                          all of them; two hours or more
#   ci/benchmarks.sh golden bounds             only these sections
#   ci/benchmarks.sh race -- --rounds 3       with options of heapwright bench
#   ci/benchmarks.sh tables                   the race's section again, from the
#                                             results of the last race
#
# Wants a quiet machine: says so when it is not. A figure that is missed is
# written down like one that is met.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup race

DOC=$ROOT/docs/benchmarks.md
SECTIONS=(machine race bounds golden describe startup)

chosen=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    [[ " ${SECTIONS[*]} tables " == *" $1 "* ]] || die "no section named $1; known: ${SECTIONS[*]}, and tables"
    chosen+=("$1")
    shift
done
[ "${1:-}" != -- ] || shift
[ ${#chosen[@]} -gt 0 ] || chosen=("${SECTIONS[@]}")
options=("$@")

quiet_machine

# Built here and not by each script, so that all of them measure one library.
preload_library
work=$CARGO_TARGET_DIR/race

# put NAME: replaces what stands between <!-- NAME --> and <!-- /NAME -->.
put() {
    cat >"$SCRATCH/new"
    grep -qxF "<!-- $1 -->" "$DOC" && grep -qxF "<!-- /$1 -->" "$DOC" || die "$DOC has no place for $1"
    awk -v name="$1" -v new="$SCRATCH/new" '
        $0 == "<!-- /" name " -->" { skip = 0 }
        !skip { print }
        $0 == "<!-- " name " -->" { skip = 1; print ""; while ((getline line < new) > 0) print line; print "" }
    ' "$DOC" >"$SCRATCH/doc"
    cat "$SCRATCH/doc" >"$DOC"
    say "written: $1"
}

# judged PATTERN COMMAND...: a script that ends with 1 if a figure is missed, and
# says so in a line like PATTERN. Without that line it has failed.
judged() {
    local status=0
    "${@:2}" >"$SCRATCH/judged" || status=$?
    [ $status -eq 0 ] || grep -qE "$1" "$SCRATCH/judged" || { cat "$SCRATCH/judged" >&2; die "${*:2} failed"; }
    cat "$SCRATCH/judged"
}

# others NAMES: `--with` and the library of each, a line each, as far as they can
# be had.
others() {
    peers "$work/peers" "$1" | sed 's/^/--with\n/'
}

take_machine() {
    local name
    printf -- '- %s %s cores, %s; %s GiB; transparent huge pages: %s\n' "$(nproc)" "$(uname -m)" \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
        "$(awk '/^MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" \
        "$(sed -n 's/.*\[\(.*\)\].*/\1/p' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)"
    name=$(sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2>/dev/null)
    printf -- '- Linux %s, %s, %s\n' "$(uname -r | sed 's,[^0-9.].*,,')" "${name:-no name of the system}" "$(getconf GNU_LIBC_VERSION)"
    printf -- '- %s; %s\n' "$(cc --version | head -1)" "$(rustc --version)"
    printf -- '- heapwright %s, on %s\n' "$(git describe --always --dirty)" "$(date -u +%F)"
}

take_race() {
    rm -f "$work/race.json"
    # An allocator that fails is a row that says so.
    ci/race.sh ${options[@]+"${options[@]}"} >&2 || say "the race ended with status $?" >&2
    take_tables
}

take_tables() {
    [ -s "$work/race.json" ] || die "there are no results in $work/race.json; ci/race.sh makes them"
    bench build -p peers -p figures
    "$MADE/figures" race "$work/race.json"
    echo
    "$MADE/peers" --work "$work/peers" --versions
}

take_bounds() {
    local with
    mapfile -t with < <(others mimalloc,snmalloc)
    echo '```text'
    judged 'figures are missed$' ci/bounds.sh --with glibc ${with[@]+"${with[@]}"}
    echo '```'
}

take_golden() {
    local library so
    bench build -p peers
    "$MADE/peers" --work "$work/peers" --only mimalloc --strict >/dev/null
    echo "| library | malloc, small: path / mean | free, local | sized delete |"
    echo "|---|--:|--:|--:|"
    for library in heapwright mimalloc; do
        so=$HEAPWRIGHT_SO
        [ $library = heapwright ] || so=$work/peers/libmimalloc.so
        HEAPWRIGHT_SO=$so ci/golden.sh --print >"$SCRATCH/golden.txt"
        awk -v l=$library '{ n[$1] = $2 + 0 " / " $3 + 0 } END { print "| " l " | " n["malloc_small"] " | " n["free_local"] " | " n["sized_delete"] " |" }' "$SCRATCH/golden.txt"
    done
}

take_describe() {
    echo "| address | ns a call |"
    echo "|---|--:|"
    ci/bounds.sh describe | sed -E 's/^(.*[^ ]) +([0-9.]+) ns$/| \1 | \2 |/'
}

take_startup() {
    echo "| | without | with | more |"
    echo "|---|--:|--:|--:|"
    ci/bounds.sh startup | sed -E 's/^[a-zA-Z]+ +(.*[^ ]) +without +([0-9]+) +with +([0-9]+) +more +(-?[0-9]+) .*$/| \1 | \2 | \3 | \4 |/'
}

for section in "${chosen[@]}"; do
    "take_$section" >"$SCRATCH/$section"
    place=$section
    [ "$section" != tables ] || place=race
    put "$place" <"$SCRATCH/$section"
done
