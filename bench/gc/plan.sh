# The plan of ci/gc.sh, sourced.
#
#   smallest heap of each collector ---- the larger one, times 1.5, 2 and 3: the limit of all
#   heapwright | with generations | bdwgc that marks with one thread | bdwgc        in turns
#
# In its second column bdwgc marks with as many threads as there are processors. (The first is of gcbench, splay and
# strings alone.) Its smallest heap is that of the first or last of WAYS; at each limit it grows in the fastest of WAYS.

# The ways in which bdwgc's heap grows: its share of the limit at the start, and GC_free_space_divisor.
WAYS=(begin=100 begin=50 begin=0 'begin=0 divisor=10')

# Builds the loads; HAS_BDWGC says whether the peer is there.
gc_begin() {
    local load compile=(cc -std=gnu17 -O2 -Wall -Wextra -Werror -pthread)
    preload_library
    prepare_launcher
    PROGRAMS=$SCRATCH/programs
    mkdir "$PROGRAMS"
    # The library lies beside the programs, which find it by this name, whatever HEAPWRIGHT_SO is.
    ln -s "$(realpath "$HEAPWRIGHT_SO")" "$PROGRAMS/libheapwright.so"
    HAS_BDWGC=1
    [ -e /usr/include/gc.h ] || { say "without bdwgc"; HAS_BDWGC=; }
    for load in gcbench splay strings scaling fillers quads garbage ephemerons finalizers pauses compact; do
        "${compile[@]}" -DDOOR_HEAPWRIGHT -Iinclude -o "$PROGRAMS/$load-heapwright" "bench/gc/loads/$load.c" \
            -L"$PROGRAMS" -lheapwright -Wl,-rpath,"$PROGRAMS"
        [[ -z $HAS_BDWGC || $load == pauses || $load == compact ]] ||
            "${compile[@]}" -DDOOR_BDWGC -o "$PROGRAMS/$load-bdwgc" "bench/gc/loads/$load.c" -lgc
    done
    [ -n "$quick" ] || return 0
    refuses "'x' is no depth" gcbench-heapwright depth=x
    refuses "'dpeth=9' is no setting here" gcbench-heapwright dpeth=9
    refuses "there is no layout 'wide'" pauses-heapwright layout=wide
}

smallest() { "$MADE/figures" smallest $quick "$LAUNCHER" "$@"; }
# Prints the fastest of WAYS for bdwgc, by the better of two runs. A way with a run that exhausts its memory comes last.
fastest_way() { # COMMAND...
    local way wall
    for way in "${WAYS[@]}"; do
        for _ in 1 2; do
            # shellcheck disable=SC2086 # words
            wall=$(timeout 600 "$@" $way 2>/dev/null | sed -n 's/^result .*wall_ns=\([0-9]*\).*/\1/p') || wall=
            echo "${wall:-failed} $way"
        done
    done | awk '{ at = $2 " " $3; if ($1 == "failed") failed[at]++; else if (!(at in wall) || $1 < wall[at]) wall[at] = $1; seen[at] = 1 }
        END { for (at in seen) print failed[at] + 0, (at in wall) ? wall[at] : 1e18, at }' | sort -k1,1n -k2,2g | head -1 | cut -d' ' -f3-
}

# limited LOAD THREADS WORD...: both collectors under equal limits.
limited() {
    local load=$1 threads=$2 row needs way kib theirs=- limit factor ours bdwgc
    shift 2
    row="$threads thread$([ "$threads" = 1 ] || echo s)"
    ours=("$PROGRAMS/$load-heapwright" "$@" "threads=$threads") bdwgc=("$PROGRAMS/$load-bdwgc" "$@" "threads=$threads")
    needs=$(smallest "${ours[@]}")
    [ "$needs" = - ] || note 'smallest heaps' "$load, $row" heapwright kib "$needs"
    if [ -n "$HAS_BDWGC" ]; then
        for way in "${WAYS[0]}" "${WAYS[-1]}"; do
            # shellcheck disable=SC2086 # words
            kib=$(smallest "${bdwgc[@]}" $way)
            { [ "$kib" = - ] || { [ "$theirs" != - ] && [ "$theirs" -le "$kib" ]; }; } || theirs=$kib
        done
        [ "$theirs" = - ] || note 'smallest heaps' "$load, $row" bdwgc kib "$theirs"
    fi
    for factor in $(sized '1.5 2 3' 2); do
        limit=$(awk -v a="${needs/-/0}" -v b="${theirs/-/0}" -v f="$factor" 'BEGIN { printf "%d", (a > b ? a : b) * f }')
        planned "$load" "$row $factor x" heapwright 0 - "${ours[@]}" "limit=$limit"
        planned "$load" "$row $factor x" 'heapwright generations' 0 - "${ours[@]}" "limit=$limit" generations=1
        [ -n "$HAS_BDWGC" ] || continue
        way=$(fastest_way "${bdwgc[@]}" "limit=$limit")
        case $load in
            # shellcheck disable=SC2086 # words
            gcbench | splay | strings) planned "$load" "$row $factor x" 'bdwgc one marker' 0 - GC_MARKERS=1 "${bdwgc[@]}" "limit=$limit" $way ;;
        esac
        # shellcheck disable=SC2086 # words
        planned "$load" "$row $factor x" bdwgc 0 - "${bdwgc[@]}" "limit=$limit" $way
    done
}
# each LOAD THREADS FULL QUICK: runs with each number of threads and these settings.
each() {
    local threads
    # shellcheck disable=SC2046 # words
    for threads in $2; do limited "$1" "$threads" $(sized "$3" "$4"); done
    run_plan 7
}
section_gcbench() { each gcbench '1 2' '' depth=14; }
section_splay() { each splay '1 2' '' 'size=300 rounds=20'; }
section_strings() { each strings '1 2' '' 'texts=40 kept=8 lines=100'; }
section_quads() { each quads '1 2' '' 'depth=6 rounds=500'; }
section_ephemerons() { each ephemerons '1 2 8' 'keys=50000 rounds=500000' 'keys=2000 rounds=20000'; }
section_finalizers() { each finalizers '1 2 8' 'kept=50000 rounds=500000' 'kept=2000 rounds=20000'; }
section_fillers() {
    local threads
    for threads in 2 8; do
        # shellcheck disable=SC2046 # words
        planned mutators "$(sized full quick)" "$threads mutators" 0 - "$PROGRAMS/fillers-heapwright" $(sized '' depth=11) "threads=$threads" percent=200
    done
    each fillers '1 2 8' '' depth=11
}

# Dropped objects, in a heap of 128 MiB. bdwgc grows in its fastest way. Ours collects when all of the heap is used, or
# after each 4 MiB, as by default: this keeps the memory in the caches.
section_garbage() {
    local kind size row words
    for kind in traced leaf; do
        for size in $(sized '20000 33000 70000 100000' 20000); do
            row="$kind $size bytes" words=("size=$size" "kind=$kind" "$(sized total=2048 total=64)")
            planned garbage "$row" heapwright 0 - "$PROGRAMS/garbage-heapwright" "${words[@]}" least=4096
            planned garbage "$row" 'heapwright collects when full' 0 - "$PROGRAMS/garbage-heapwright" "${words[@]}"
            # shellcheck disable=SC2046 # words
            [ -z "$HAS_BDWGC" ] || planned garbage "$row" bdwgc 0 - "$PROGRAMS/garbage-bdwgc" "${words[@]}" $(fastest_way "$PROGRAMS/garbage-bdwgc" "${words[@]}")
        done
    done
    run_plan 7
}

section_pauses() {
    local words
    read -ra words <<<"$(sized 'live=1048576 turnover=400 budget=500000' 'live=2048 least=256')"
    planned pauses "$(sized '1 GiB live' '2 MiB live')" 'steps of 500 us' 0 - "$PROGRAMS/pauses-heapwright" "${words[@]}" incremental=1
    planned pauses "$(sized '1 GiB live' '2 MiB live')" 'stop the world' 0 - "$PROGRAMS/pauses-heapwright" "${words[@]}" incremental=0
    run_plan 7
}
section_scaling() {
    local door words
    read -ra words <<<"$(sized '' rounds=50)"
    for door in heapwright ${HAS_BDWGC:+bdwgc}; do
        planned scaling "$door" '2 threads one heap' 0 - "$PROGRAMS/scaling-$door" ${words[@]+"${words[@]}"} how=threads count=2
        planned scaling "$door" '2 processes' 0 - "$PROGRAMS/scaling-$door" ${words[@]+"${words[@]}"} how=processes count=2
        # (One thread computes another sum, so it has a row of its own.)
        planned scaling "$door, alone" '1 thread' 0 - "$PROGRAMS/scaling-$door" ${words[@]+"${words[@]}"} how=threads count=1
    done
    run_plan 7
}
section_compact() {
    local words name word
    read -ra words <<<"$(sized '' 'objects=40000 budget=50000')"
    while IFS='|' read -r name word; do
        planned compact "$name" heapwright 0 - "$PROGRAMS/compact-heapwright" ${words[@]+"${words[@]}"} incremental=1 ${word:+"$word"}
    done <<<$'fine|\nwith generations|generations=1\nruby|layout=ruby\nhalf is kept|keep=50'
    run_plan 7
}
