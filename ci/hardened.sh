#!/usr/bin/env bash
# The misuse set of mode=hardened (corpus/hardened): what is caught at once, late, or not at all, by group,
# with heapwright's modes and with other hardened allocators beside; and that no right twin is disturbed.
# The attacks of corpus/hardened/attacks, which must succeed against mode=fast, must fail against hardened.
#
#   ci/hardened.sh             what .ci/run does: light and full, with and without guards, cold; their right
#                              twins; the attacks; compared with ci/hardened.txt
#   ci/hardened.sh --all       the same, and cold and warm, and fast and debug mode beside
#   ci/hardened.sh --peers     with --all: hardened_malloc, scudo, mimalloc secure, snmalloc checked, glibc
#   ci/hardened.sh --time      instead: the race's workloads and programs under light and full, with mimalloc and the
#                              hardened peers beside; further arguments go to heapwright bench (--rounds 3)
#   ci/hardened.sh --bounds [MODE]...
#                              instead: the cost of the checks of libheapwright-hardened.so, and of
#                              libheapwright-check.so, for a call of a copying function, beside the
#                              C library's own (bench/hardened/copies.c); hardened and check, or
#                              fast. Targets for memcpy of 16 bytes: at most 2 ns more outside of
#                              the heap, 3 ns into a block of mode=hardened, 5 ns into a block of
#                              the library that `heapwright check` preloads, also a large one
#   ci/hardened.sh --missed    also a line for each variant that was missed
#   ci/hardened.sh --groups overflow,underflow
#                              only these groups, and no attacks
#
# HARDENED_MALLOC names a checkout of github.com/GrapheneOS/hardened_malloc; without it that peer is left
# out. corpus/hardened/README.md defines the words. JOBS (2) programs run at once.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ACTION=quick PEERS=0 JUDGE=() GROUPS_ONLY=''
while [ $# -gt 0 ]; do
    case $1 in
        --all) ACTION=all ;;
        --peers) ACTION=all PEERS=1 ;;
        --time) ACTION=time; shift; break ;;
        --bounds) ACTION=bounds; shift; break ;;
        --missed) JUDGE+=(--missed) ;;
        --groups) [ $# -ge 2 ] || die "--groups needs names"; GROUPS_ONLY=$2; shift ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) die "unknown option $1" ;;
    esac
    shift
done
bounds() {
    [ $# -gt 0 ] || set -- hardened check
    command_or_package cc gcc
    hardened_library
    check_library
    cc -O2 -Wall -Wextra -fno-builtin -o "$SCRATCH/copies" bench/hardened/copies.c -ldl

    local status=0 mode library options name place plain more limit verdict
    printf '%-10s %-10s %-8s %10s %8s\n' mode function place "plain ns" "more ns"
    for mode in "$@"; do
        # The first block of a small program stands between guards, and its end takes longer to find.
        library=$HEAPWRIGHT_HARDENED_SO options=mode=$mode
        [ "$mode" != hardened ] || options=mode=hardened,guard=never
        [ "$mode" != check ] || library=$HEAPWRIGHT_CHECK_SO options=mode=debug
        HEAPWRIGHT=$options LD_PRELOAD=$library "$SCRATCH/copies" >"$SCRATCH/figures"
        while read -r name place plain more; do
            limit=
            case $mode:$name:$place in
                hardened:memcpy:block | hardened:memcpy:blocks | hardened:memcpy:large) limit=3 ;;
                check:memcpy:block | check:memcpy:blocks | check:memcpy:large) limit=5 ;;
                hardened:memcpy:stack | check:memcpy:stack) limit=2 ;;
            esac
            verdict=
            if [ -n "$limit" ]; then
                verdict="   at most $limit"
                awk "BEGIN { exit !($more > $limit) }" && { verdict="   FAIL: at most $limit"; status=1; }
            fi
            printf '%-10s %-10s %-8s %10s %8s%s\n' "$mode" "$name" "$place" "$plain" "$more" "$verdict"
        done <"$SCRATCH/figures"
    done
    return $status
}
[ $ACTION != bounds ] || { bounds "$@"; exit; }

[ -z "$GROUPS_ONLY" ] || JUDGE+=(--groups "$GROUPS_ONLY")
JUDGE+=(--jobs "${JOBS:-2}")
command_or_package python3 python3
command_or_package c++ g++
preload_library

WORK=$CARGO_TARGET_DIR/hardened
mkdir -p "$WORK"
HARDENED_PEERS=hardened_malloc,hardened_malloc-light,scudo,mimalloc-secure,snmalloc-checks,glibc-check

if [ $ACTION = time ]; then
    command -v sqlite3 >/dev/null || say "some programs of the race are missing; ci/race.sh installs them"
    cargo build --quiet --release --locked -p heapwright-cli
    # (The command cannot tell that glibc's checking library is in force: it has only old versions of the names.)
    peers "$WORK/peers" "mimalloc,${HARDENED_PEERS%,glibc-check}" >"$WORK/peers.txt"
    with=(--with "heapwright-light=HEAPWRIGHT=mode=hardened $HEAPWRIGHT_SO" --with "heapwright-full=HEAPWRIGHT=mode=hardened:full $HEAPWRIGHT_SO")
    only=glibc,heapwright-light,heapwright-full
    while IFS= read -r line; do with+=(--with "$line"); only+=,${line%%=*}; done <"$WORK/peers.txt"
    bench/programs/prepare.sh "$WORK/programs" >/dev/null
    "$CARGO_TARGET_DIR/release/heapwright" bench --suite "$WORK/programs/suite.toml" "${with[@]}" --only "$only" \
        --rounds 3 --rounds-long 3 --format json -o "$WORK/race.json" --quiet "$@" || say "a program failed under an allocator"
    python3 ci/hardened-time.py "$WORK/race.json"
    exit
fi

# --- the programs: compiled when they or the compiler have changed ------------------------------------------

# Without optimisation, so that the misuse is still there.
compiled() { # COMPILER OUT FLAGS... -- SOURCE...
    local compiler=$1 out=$2 flags=(-O0 -g -w -fno-builtin -pthread) hash
    shift 2
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    hash=$({ "$compiler" --version; printf '%s\n' "${flags[@]}"; cat corpus/hardened/*.h corpus/hardened/attacks/*.h "$@"; } | sha256sum)
    [ -x "$out" ] && [ "$(cat "$out.hash" 2>/dev/null)" = "$hash" ] && return 0
    "$compiler" "${flags[@]}" -o "$out.new" "$@" && mv "$out.new" "$out" && printf %s "$hash" >"$out.hash"
}
compiled c++ "$WORK/misuse" -std=c++17 -fsized-deallocation -- corpus/hardened/*.cc

# --- what they run under ------------------------------------------------------------------------------------

# The names are those of ci/hardened.txt.
MODES=() HARDENED=(light=hardened full=hardened:full light-never=hardened,guard=never full-never=hardened:full,guard=never)
under() { printf 'heapwright-%s=HEAPWRIGHT=mode=%s %s' "$1" "$2" "$HEAPWRIGHT_SO"; }
ours=() others=() status=0
for mode in "${HARDENED[@]}"; do
    if warned=$(HEAPWRIGHT=mode=${mode#*=} LD_PRELOAD=$HEAPWRIGHT_SO /bin/true 2>&1) && [ -n "$warned" ]; then
        say "FAIL mode=${mode#*=} is left out: $warned"
        status=1
        continue
    fi
    MODES+=("$mode")
    ours+=(--under "$(under "${mode%%=*}" "${mode#*=}")")
done
if [ $ACTION = all ]; then
    others+=(--under "$(under fast fast)" --under "$(under debug debug)")
    if [ $PEERS -eq 1 ]; then
        peers "$WORK/peers" $HARDENED_PEERS >"$WORK/peers.txt"
        while IFS= read -r line; do others+=(--under "$line"); done <"$WORK/peers.txt"
        others+=(--under glibc=)
    fi
fi

judge() { python3 ci/hardened.py "$WORK/misuse" "${JUDGE[@]}" "$@" || status=1; }
judge --right "${ours[@]}"
CHECK=()
[ -n "$GROUPS_ONLY" ] || CHECK=(--check ci/hardened.txt)
judge "${CHECK[@]}" "${ours[@]}" "${others[@]}"
if [ $ACTION = all ]; then
    judge --right --warm "${ours[@]}"
    judge --warm "${CHECK[@]}" "${ours[@]}" "${others[@]}"
fi

# --- attacks --------------------------------------------------------------------------------------------------

attacked() { # NAME ENVIRONMENT...: the last line of the attack $attack
    local said
    said=$(env "${@:2}" timeout 60 "$WORK/attacks/$attack" 2>/dev/null | tail -1) || true
    case $said in
        'attack: succeeded '*) SUCCEEDED=1 ;;
        'attack: failed '*) SUCCEEDED=0 ;;
        *) SUCCEEDED=0 said="attack: failed (it did not come to its end)" ;;
    esac
    printf '| %s | %s | %s |\n' "$attack" "$1" "${said#attack: }"
}
attacks() {
    local source attack line mode
    mkdir -p "$WORK/attacks"
    printf '\n| attack | under | outcome |\n|---|---|---|\n'
    for source in corpus/hardened/attacks/*.c; do
        attack=$(basename "$source" .c)
        compiled cc "$WORK/attacks/$attack" -std=gnu11 -- "$source"
        attacked heapwright-fast HEAPWRIGHT=mode=fast LD_PRELOAD="$HEAPWRIGHT_SO"
        [ $SUCCEEDED -eq 1 ] || { say "FAIL $attack must succeed against mode=fast, or it proves nothing"; status=1; }
        for mode in "${MODES[@]}"; do
            attacked "heapwright-${mode%%=*}" HEAPWRIGHT="mode=${mode#*=}" LD_PRELOAD="$HEAPWRIGHT_SO"
            [ $SUCCEEDED -eq 0 ] || { say "FAIL $attack succeeds against mode=${mode#*=}"; status=1; }
        done
        [ $PEERS -eq 1 ] || continue
        while IFS= read -r line; do
            local name=${line%%=*} library=${line##* } settings=()
            [ "$library" != "$line" ] && settings=("${line#*=}") && settings=("${settings[0]% *}")
            attacked "$name" "${settings[@]}" LD_PRELOAD="${library#"$name="}"
        done <"$WORK/peers.txt"
    done
}
[ -n "$GROUPS_ONLY" ] || attacks
exit $status
