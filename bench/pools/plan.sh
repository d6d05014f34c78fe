# The plan of ci/pools.sh, sourced: each run measures one contender in one pattern. The runs of a row follow each other.
# A contender: its column, its program (pools or pools-mimalloc) and its name there.

PAIRS=(
    'owning: heapwright Pool|pools|pool-owning' 'owning: heapwright SharedPool|pools|shared-owning'
    'owning: plurality Alloc|pools|plurality-alloc' 'owning: plurality Box|pools|plurality-box'
    'owning: Box on mimalloc|pools-mimalloc|box' 'owning: Box on glibc|pools|box'
    'raw: heapwright Pool|pools|pool-raw' 'raw: heapwright SharedPool|pools|shared-raw'
    'raw: plurality|pools|plurality-raw' 'raw: mimalloc|pools|mimalloc-raw'
    'keyed: heapwright Pool|pools|pool-keyed' 'keyed: heapwright KeyPool|pools|key-pool' 'keyed: slab|pools|slab' 'keyed: slotmap|pools|slotmap'
    'keyed: sharded-slab|pools|sharded-slab'
)
MAPS=(
    'heapwright KeyPool|pools|key-pool' 'slab|pools|slab' 'slotmap|pools|slotmap' 'slotmap Dense|pools|dense' 'thunderdome|pools|thunderdome'
    'generational-arena|pools|generational-arena' 'sharded-slab|pools|sharded-slab'
)
SHARED=(
    'heapwright SharedPool|pools|shared' 'plurality in a Mutex|pools|plurality'
    'plurality each its own|pools|plurality-own' 'Box on mimalloc|pools-mimalloc|box'
)
CHURN=(
    'heapwright Pool|pools|pool' 'heapwright SharedPool|pools|shared' 'plurality Alloc|pools|plurality-alloc'
    'plurality Box|pools|plurality-box' 'plurality Box on mimalloc|pools-mimalloc|plurality-box'
    'Box on mimalloc|pools-mimalloc|box' 'Box on glibc|pools|box'
)
ARENAS=('heapwright Arena|pools|arena' 'bumpalo|pools|bumpalo' 'bump-scope|pools|bump-scope')
# of COUNT: prints COUNT, or a tenth of it in a quick run.
of() { echo $(($1 / $(sized 1 10))); }
# row SECTION ROW LIST PATTERN MORE...: runs each contender of the list.
row() {
    local -n list=$3
    local contender column program name
    for contender in "${list[@]}"; do
        IFS='|' read -r column program name <<<"$contender"
        planned "$1" "$2" "$column" 0 - "$MADE/$program" run "$4" "$name" "${@:5}"
    done
}

section_pairs() {
    local shape
    for shape in pair in-order random-order; do row pairs "${shape//-/ }" PAIRS pairs $shape "$(of 5000000)"; done
    run_plan 9
}
section_shared() {
    local threads
    for threads in 1 2 8; do row shared "$threads threads" SHARED shared own $threads "$(of 2000000)"; done
    for threads in 2 8; do row 'handed over' "$threads threads" SHARED shared hand-over $threads "$(of 1000000)"; done
    run_plan 9
}
section_churn() {
    row churn graph CHURN churn graph "$(of 1000000)"
    row churn list CHURN churn list "$(of 2000000)"
    run_plan 9
}
section_arenas() {
    local shape
    for shape in u32 layout; do row arenas $shape ARENAS arena $shape "$(of 20000000)"; done
    run_plan 9
}
# The maps are half empty.
section_maps() {
    local operation count rounds
    for operation in insert get remove iterate; do
        for count in 100 10000 1000000; do
            rounds=$((4000000 / count))
            rounds=$(of $((rounds < 10 ? 10 : rounds > 20000 ? 20000 : rounds)))
            row maps "$operation, $count" MAPS map $operation $count "$rounds"
        done
        # One pass over the largest: cache misses, which vary little.
        row maps "$operation, 10000000" MAPS map $operation "$(of 10000000)" 1
    done
    for count in 100 10000 1000000; do row 'map memory' $count MAPS map memory $count 1; done
    run_plan 3
}
section_resident() {
    local row bytes objects shape
    while read -r row bytes objects; do
        for shape in random runs; do
            # Memory does not depend on luck: two rounds show that.
            planned resident "$row B" $shape 2 - "$MADE/pools" run resident "$bytes" $shape "$(of "$objects")"
        done
    done <<<$'32 32 1000000\n200 200 1000000\n8192 8192 100000'
    run_plan 9
}

counted() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/.*Collected : *//p'; }
# A pair's instructions: the difference of two runs, divided by the difference of their pairs. (Calls: ci/golden.sh.)
section_instructions() {
    local contender column program name few many path branches mean
    [ "$(uname -m)" = x86_64 ] || { say "skip: instructions are counted on x86-64"; return; }
    for contender in "${PAIRS[@]}"; do
        IFS='|' read -r column program name <<<"$contender"
        few=$(counted "$MADE/$program" one "$name" 10000) many=$(counted "$MADE/$program" one "$name" 110000)
        note pairs instructions "$column" ns "$(awk "BEGIN { printf \"%.2f\", ($many - $few) / 100000 }")"
    done
    ci/golden.sh pools --print >"$SCRATCH/calls"
    while read -r name path mean branches _; do
        note instructions "$name" path ns "$path"
        note instructions "$name" branches ns "$branches"
        note instructions "$name" mean ns "$mean"
    done <"$SCRATCH/calls"
}
