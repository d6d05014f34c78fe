#!/usr/bin/env bash
# Runs the misuse set of mode=hardened (corpus/hardened). Tables show by group how much misuse heapwright's modes, and
# other hardened allocators, catch at once, late, or not at all. The right twins must run undisturbed. The attacks of
# corpus/hardened/attacks must succeed against mode=fast, and fail against mode=hardened.
#
#   ci/hardened.sh             light and full, with and without guards, cold; their right twins; the attacks. The
#                              percentages must reach those of ci/hardened.txt
#   ci/hardened.sh --all       the same, also warm, with fast and debug mode beside
#   ci/hardened.sh --peers     as --all, beside hardened_malloc, scudo, mimalloc secure, snmalloc checked and glibc
#   ci/hardened.sh --missed    also a line for each variant that was missed
#   ci/hardened.sh --groups overflow,underflow    only these groups, and no attacks
#   ci/hardened.sh --bounds [MODE]...
#                              instead: the cost of the checks of bounds for a call of a copying function, beside the C
#                              library's own (bench/hardened/copies.c), with targets. MODE is hardened
#                              (libheapwright-hardened.so), check (libheapwright-check.so) or fast; default: hardened
#                              and check
#
# HARDENED_MALLOC names a checkout of github.com/GrapheneOS/hardened_malloc. Without it that peer is left out.
# corpus/hardened/README.md defines the words. JOBS (2) programs run at once.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup hardened

all='' peers='' groups='' words=(--jobs "${JOBS:-2}")
while [ $# -gt 0 ]; do
    case $1 in
        --all) all=1 ;;
        --peers) all=1 peers=1 ;;
        --bounds) shift; groups=bounds; break ;;
        --missed) words+=(--missed) ;;
        --groups) [ $# -ge 2 ] || die "--groups needs names"; groups=$2; words+=(--groups "$2"); shift ;;
        *) die "unknown option $1" ;;
    esac
    shift
done

bounds() {
    local status=0 mode library options name place plain more limit verdict
    hardened_library
    check_library
    cc -O2 -Wall -Wextra -fno-builtin -o "$SCRATCH/copies" bench/hardened/copies.c -ldl
    printf '%-10s %-10s %-8s %10s %8s\n' mode function place "plain ns" "more ns"
    [ $# -gt 0 ] || set -- hardened check
    for mode in "$@"; do
        # (The end of a block between guards takes longer to find.)
        library=$HEAPWRIGHT_HARDENED_SO options=mode=$mode
        [ "$mode" != hardened ] || options=mode=hardened,guard=never
        [ "$mode" != check ] || library=$HEAPWRIGHT_CHECK_SO options=mode=debug
        while read -r name place plain more; do
            verdict='' limit=''
            case $mode:$name:$place in
                hardened:memcpy:block* | hardened:memcpy:large) limit=3 ;;
                check:memcpy:block* | check:memcpy:large) limit=5 ;;
                hardened:memcpy:stack | check:memcpy:stack) limit=2 ;;
            esac
            [ -z "$limit" ] || verdict=$(awk "BEGIN { print ($more > $limit ? \"FAIL\" : \"ok\") }")
            [ "$verdict" != FAIL ] || status=1
            printf '%-10s %-10s %-8s %10s %8s %s\n' "$mode" "$name" "$place" "$plain" "$more" "${verdict:+$verdict: at most $limit}"
        done < <(HEAPWRIGHT=$options LD_PRELOAD=$library "$SCRATCH/copies")
    done
    return $status
}
if [ "$groups" = bounds ]; then bounds "$@"; exit; fi

preload_library
WORK=$CARGO_TARGET_DIR/hardened
mkdir -p "$WORK/attacks"

# compiled COMPILER OUT FLAGS... -- SOURCE...: compiles if the sources, the flags or the compiler have changed, without
# optimisation, which could remove the misuse.
compiled() {
    local compiler=$1 out=$2 flags=(-O0 -g -w -fno-builtin -pthread) hash
    shift 2
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    hash=$({ "$compiler" --version; printf '%s\n' "${flags[@]}"; cat corpus/hardened/*.h corpus/hardened/attacks/*.h "$@"; } | sha256sum)
    [ -x "$out" ] && [ "$(cat "$out.hash" 2>/dev/null)" = "$hash" ] && return 0
    "$compiler" "${flags[@]}" -o "$out.new" "$@" && mv "$out.new" "$out" && printf %s "$hash" >"$out.hash"
}
compiled c++ "$WORK/misuse" -std=c++17 -fsized-deallocation -- corpus/hardened/*.cc

# The allocators: NAME=[VAR=VALUE ...]LIBRARY. The names are those of ci/hardened.txt.
status=0 ours=() others=()
under() { printf 'heapwright-%s=HEAPWRIGHT=mode=%s %s' "$1" "$2" "$HEAPWRIGHT_SO"; }
for mode in light=hardened full=hardened:full light-never=hardened,guard=never full-never=hardened:full,guard=never; do
    ours+=("$(under "${mode%%=*}" "${mode#*=}")")
    warned=$(HEAPWRIGHT=mode=${mode#*=} LD_PRELOAD=$HEAPWRIGHT_SO /bin/true 2>&1) || true
    [ -z "$warned" ] || { say "FAIL mode=${mode#*=}: $warned"; status=1; }
done
[ -z "$all" ] || others+=("$(under fast fast)" "$(under debug debug)")
if [ -n "$peers" ]; then
    mapfile -t -O ${#others[@]} others < <(peers "$WORK/peers" hardened_malloc,hardened_malloc-light,scudo,mimalloc-secure,snmalloc-checks,glibc-check)
    others+=(glibc=)
fi
judge() { # OPTION... -- ALLOCATOR...
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    python3 corpus/hardened/judge.py "$WORK/misuse" "${words[@]}" "${options[@]}" "${@/#/--under=}" || status=1
}
check=()
[ -n "$groups" ] || check=(--check ci/hardened.txt)
for warm in '' ${all:+--warm}; do
    judge --right $warm -- "${ours[@]}"
    judge $warm "${check[@]}" -- "${ours[@]}" "${others[@]}"
done

# attacked NAME=[VAR=VALUE ...]LIBRARY: runs the attack under an allocator. Returns 1 if it succeeds.
attacked() {
    local settings said
    read -r -a settings <<<"${1#*=}"
    [ ${#settings[@]} -eq 0 ] || settings[-1]=LD_PRELOAD=${settings[-1]}
    said=$(env "${settings[@]}" timeout 60 "$WORK/attacks/$attack" 2>/dev/null | tail -1) || true
    [[ $said == 'attack: '* ]] || said='attack: failed (it did not come to its end)'
    printf '| %s | %s | %s |\n' "$attack" "${1%%=*}" "${said#attack: }"
    [[ $said != 'attack: succeeded '* ]]
}
[ -z "$groups" ] || exit $status
printf '\n| attack | under | outcome |\n|---|---|---|\n'
for source in corpus/hardened/attacks/*.c; do
    attack=$(basename "$source" .c)
    compiled cc "$WORK/attacks/$attack" -std=gnu11 -- "$source"
    ! attacked "$(under fast fast)" || { say "FAIL $attack must succeed against mode=fast, or it proves nothing"; status=1; }
    for mode in "${ours[@]}"; do attacked "$mode" || { say "FAIL $attack succeeds"; status=1; }; done
    [ -z "$peers" ] || for other in "${others[@]:2}"; do attacked "$other" || true; done
done
exit $status
