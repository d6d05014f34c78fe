# The plan of ci/caches.sh, sourced.
#
#   load     threads          what runs                         timed runs    rounds
#   ttest1   as asked for     4 T threads, T at a time          all, 61st     all
#   rpc      as asked for     T/2 clients, T/2 servers          61st          all
#   churn    1, 4             100,000, this many at a time      none          at most 3
#   idle     1, 10, 100, 1000 this many, 4,000 bursts           none          at most 6
#
# Speed and memory come from runs without timed calls. Other runs time all calls of a thread, or one in 61
# (programs/inside.h), with half the work. Long loads measure memory, which varies little, so fewer rounds suffice.

# The compiler must not know malloc's meaning: it would remove calls.
PLAIN=(-O2 -Wall -Wextra -pthread -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)

# Builds the programs, and sets the runs: ALLOCATORS, and the number of caches of each model.
caches_begin() {
    local program name models=() one cpus shared
    PROGRAMS=$SCRATCH/programs
    mkdir "$PROGRAMS"
    for program in empty ttest1 rpc churn idle; do
        cc "${PLAIN[@]}" -o "$PROGRAMS/$program" "bench/caches/programs/$program.c"
    done
    preload_library
    prepare_launcher
    shared=$(numbers "${given_shared:-8,32}")
    for name in exclusive auto shared ${shared:+$(printf 'shared:%s ' $shared)} percpu; do
        models+=("$name=HEAPWRIGHT=cache=$name $(realpath "$HEAPWRIGHT_SO")")
    done
    allocators "${models[@]}" -- scudo,scudo-classic,gperftools,jemalloc,mimalloc
    # A library may lack the option, or the loader may ignore it: that is an error.
    for one in "${ALLOCATORS[@]}"; do
        settings_of "$one"
        name=$(env ${UNDER[@]+"${UNDER[@]}"} "$PROGRAMS/empty" 2>&1 >/dev/null) && [ -z "$name" ] || die "${one%%=*}: $name"
    done
    THREADS=$(numbers "${given_threads:-$(sized 2,40,80 2,16)}")
    PERCENT=${given_percent:-$(sized 100 1)}
    [[ $PERCENT =~ ^[1-9][0-9]{0,3}$ ]] || die "'$PERCENT' is no percentage"
    cpus=$(nproc)
    CACHES=([exclusive]=1 [auto]=1 [percpu]=$cpus [shared]=$((cpus < 32 ? cpus : 32)))
    [ -z "$quick" ] || caches_are_noticed
}
declare -A CACHES

# notices PROGRAM ARGUMENT...: fails unless the program notices a broken allocator.
notices() {
    local status=0
    LD_PRELOAD=$SCRATCH/libtwice.so timeout 60 "$PROGRAMS/$1" "${@:2}" >"$SCRATCH/out" 2>"$SCRATCH/errors" || status=$?
    [ $status -eq 3 ] || die "$1 does not notice memory that is handed out twice: status $status; $(head -1 "$SCRATCH/errors")"
}
caches_are_noticed() {
    cc -O2 -Wall -Wextra -fno-builtin -fPIC -shared -pthread -o "$SCRATCH/libtwice.so" bench/caches/programs/twice.c
    notices ttest1 none 16 4 5000 1000
    notices rpc none 2 2 2000
    notices churn none 1000 2 64
    notices idle none 10 400 100
    say "memory that is handed out twice is noticed by all programs"
    refuses 'usage: rpc' rpc
    refuses "'x' is no number of requests" rpc none 1 1 x
    refuses "'2s' is no CLOCK" ttest1 2s 1 1 1 1
    refuses 'needs a number from 10 to' idle none 10 9 1
}

# part OF LEAST: this part of the work.
part() { local work=$(($1 * PERCENT / 100)); echo $((work > $2 ? work : $2)); }

# ran ROUNDS: runs the plan, and counts the caches of each of our settings.
ran() {
    local one row
    planned empty empty glibc 1 - "$PROGRAMS/empty"
    run_plan "$1"
    for one in "${ALLOCATORS[@]%%=*}"; do
        [[ $one != shared:* ]] || CACHES[$one]=${one#shared:}
        [ -n "${CACHES[$one]:-}" ] || continue
        for row in "${ROWS[@]}"; do
            for ((round = 1; round <= $(rounds_of "$1"); round++)); do note "$SECTION" "$row" "$one" caches "${CACHES[$one]}" $round; done
        done
    done
}

section_ttest1() {
    local threads clock half total
    read -ra ROWS <<<"$THREADS"
    for threads in "${ROWS[@]}"; do
        for clock in none all 61; do
            half=$([ $clock = none ] && echo 1 || echo 2) total=$((threads * 4))
            planned_under "ttest1$(timed $clock)" "$threads" 0 "$PROGRAMS/ttest1" $clock $total "$threads" $(($(part $((16000000 / half)) 1) / total + 1)) 100000
        done
    done
    ran 10
}
timed() { case $1 in all) echo ' all timed' ;; 61) echo ' sampled' ;; esac }

section_rpc() {
    local threads clock side one said
    read -ra ROWS <<<"$THREADS"
    for threads in "${ROWS[@]}"; do
        side=$(((threads + 1) / 2))
        for clock in none 61; do
            planned_under "rpc$(timed $clock)" "$threads" 0 "$PROGRAMS/rpc" $clock $side $side \
                "$(part $([ $clock = none ] && echo 200000 || echo 100000) $((100 * side)))"
        done
    done
    ran 10
    # The share of per-CPU operations whose restartable sequence committed.
    for one in "${ALLOCATORS[@]}"; do
        [ "${one%%=*}" = percpu ] || continue
        for threads in "${ROWS[@]}"; do
            side=$(((threads + 1) / 2))
            said=$(LD_PRELOAD=$HEAPWRIGHT_SO HEAPWRIGHT=cache=percpu,stats=exit "$PROGRAMS/rpc" none $side $side "$(part 200000 $((100 * side)))" 2>&1 >/dev/null)
            awk '/rseq commits/ { done = $4 } /rseq fallbacks/ { fell = $4 } END { if (done + fell > 0) print 100 * done / (done + fell) }' <<<"$said" >"$SCRATCH/percent"
            [ ! -s "$SCRATCH/percent" ] || note rpc "$threads" percpu commits_percent "$(cat "$SCRATCH/percent")"
        done
    done
}

section_churn() {
    local at_once
    ROWS=(1 4)
    for at_once in 1 4; do planned_under churn $at_once 3 "$PROGRAMS/churn" none "$(part 100000 200)" $at_once 64; done
    ran 10
}

section_idle() {
    local threads
    ROWS=(1 10 100)
    [ "$PERCENT" -lt 10 ] || ROWS+=(1000)
    for threads in "${ROWS[@]}"; do planned_under idle "$threads" 6 "$PROGRAMS/idle" none "$threads" "$(part 4000 $((2 * threads)))" 100; done
    ran 10
    # The ratio of the heap with most threads to that with ten, round by round.
    awk -F'\t' -v OFS='\t' -v most="${ROWS[-1]}" '
        $1 == "empty" && $5 == "anonymous_end" { empty = $6 }
        $1 == "idle" { n[$3 FS $4 FS $2 FS $5] = $6; of[$3 FS $4] = 1 }
        function heap(at) { peak = n[at "rss_peak"] > n[at "rss_end"] ? n[at "rss_peak"] : n[at "rss_end"]
            return peak - n[at "rss_end"] + n[at "anonymous_end"] - n[at "stacks"] - n[at "own"] - empty }
        END { for (at in of) { few = heap(at FS 10 FS); if (few > 0 && split(at, p, FS)) print "idle growth", most, p[1], p[2], "grown", heap(at FS most FS) / few } }
    ' "$OUT/results-idle.tsv" >"$SCRATCH/grown"
    cat "$SCRATCH/grown" >>"$OUT/results-idle.tsv"
}
