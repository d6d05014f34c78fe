# The plan of `ci/gc.sh realm`, sourced. heapwright runs twice: by default, and with a limit (`heapwright-limited`): the
# memory of the leanest tracing peer, less a process's initial memory. A load that cannot run there gets a line instead.
realm_loads() { # LOAD ROW WORD...
    local load=$1 row=$2 peer most
    shift 2
    for peer in heapwright gc-arena gc dumpster rc; do planned "$load" "$row" $peer 0 - "$MADE/realm" "$load" $peer "$@"; done
    most=$(for peer in gc-arena gc; do "$MADE/realm" "$load" $peer "$@"; done |
        sed -E 's/.* peak_kib=([0-9]+) base_kib=([0-9]+) .*/\1 \2/' | awk '{ print ($1 > $2 + 1 ? $1 - $2 : 1) }' | sort -n | head -1)
    # (In a separate shell, which prints nothing about signals.)
    if ("$MADE/realm" "$load" heapwright "$@" "most=$most" >"$SCRATCH/limited" 2>&1 || exit 1) 2>/dev/null; then
        planned "$load" "$row" heapwright-limited 0 - "$MADE/realm" "$load" heapwright "$@" "most=$most"
    else
        say "$load: heapwright does not run in $most KiB: $(grep -v -e panicked -e '^$' "$SCRATCH/limited" | head -1)" >&2
    fi
    run_plan 5
    note "$load" "$row" heapwright-limited most_kib "$most"
}
# shellcheck disable=SC2046 # words
section_binary-trees() { realm_loads binary-trees "to depth $(sized 16 10)" $(sized '' depth=10); }
# shellcheck disable=SC2046 # words
section_gcbench() { realm_loads gcbench "to depth $(sized 16 10)" $(sized '' depth=10); }
# shellcheck disable=SC2046 # words
section_splay() { realm_loads splay "$(sized '4000 nodes, 500' '200 nodes, 10') turns" $(sized '' 'size=200 rounds=10'); }
