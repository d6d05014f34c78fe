#!/usr/bin/env bash
# Leaks: every program of corpus/leaks loses what its header says, and nothing
# else; its twin, which differs in a line, loses nothing. And real programs are
# said to lose only what valgrind says they lose.
#
#   ci/leaks.sh [NAME...]            the corpus, through `heapwright check`
#   ci/leaks.sh -v                   also what passed
#   ci/leaks.sh --lsan [NAME...]     the corpus itself: what LeakSanitizer finds in it
#   ci/leaks.sh --valgrind [NAME...] ... and valgrind's memcheck
#   ci/leaks.sh --list               the table of the programs
#   ci/leaks.sh programs [NAME...]   real programs, beside valgrind
#
# NAME is a program's name or a shell pattern of names. JOBS (2) run at once. Without names,
# HEAPWRIGHT_SLICE takes a sixth of the corpus.
#
#   HEAPWRIGHT          the command to test (default: built from this checkout)
#   HEAPWRIGHT_OPTIONS  words between `check` and `--`, if any
#
# How a header is written stands in corpus/leaks/README.md; headers and reports
# are read, and judged, by ci/leaks.py.
set -euo pipefail
COMMAND=${HEAPWRIGHT:-}
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

PATIENCE=60 JOBS=${JOBS:-2} ACTION=heapwright VERBOSE=
names=()
while [ $# -gt 0 ]; do
    case $1 in
        -v) VERBOSE=-v ;;
        --lsan | --valgrind | --list) ACTION=${1#--} ;;
        programs) ACTION=programs ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
        -*) die "unknown option $1" ;;
        *) names+=("$1") ;;
    esac
    shift
done
command_or_package python3 python3
leaks() { python3 "$ROOT/ci/leaks.py" "$@"; }
# A version manager's python3 is a script of many programs.
PYTHON=$(python3 -c 'import sys; print(sys.executable)')

chosen() {
    local pattern
    [ ${#names[@]} -gt 0 ] || return 0
    # shellcheck disable=SC2053
    for pattern in "${names[@]}"; do [[ $1 != $pattern ]] || return 0; done
    return 1
}

the_command() {
    if [ -z "$COMMAND" ]; then
        cargo build --quiet --release --locked -p heapwright-cli
        COMMAND=$CARGO_TARGET_DIR/release/heapwright
    fi
    command -v "$COMMAND" >/dev/null || die "no command $COMMAND"
}

# check OUT PROGRAM...: runs it checked; the report to OUT.json, the status to STATUS.
check() {
    local out=$1
    shift
    STATUS=0
    # shellcheck disable=SC2086
    (ulimit -c 0 && exec timeout -k 1 $PATIENCE "$COMMAND" check --format json -o "$out.json" ${HEAPWRIGHT_OPTIONS:-} -- "$@") \
        >"$out.out" 2>"$out.err" </dev/null || STATUS=$?
}

VALGRIND=(valgrind --quiet --leak-check=full --num-callers=30 --trace-children=yes --keep-debuginfo=yes --xml=yes)

# --- the corpus --------------------------------------------------------------

shopt -s nullglob
SOURCES=(corpus/leaks/*.c corpus/leaks/*.cc corpus/leaks/*.rs)

if [ $ACTION = list ]; then leaks table "${SOURCES[@]}"; exit 0; fi

CACHE=$CARGO_TARGET_DIR/corpus-leaks
mkdir -p "$CACHE"

corpus_tools
[ $ACTION != lsan ] || SANITIZE=leak

# examine OUT PROGRAM...: runs it under the tool; sets STATUS and FILES.
examine() {
    local out=$1
    shift
    FILES=()
    case $ACTION in
        heapwright)
            check "$out" "$@"
            FILES=("$out".json)
            ;;
        lsan)
            STATUS=0
            LSAN_OPTIONS=allocator_may_return_null=1:fast_unwind_on_malloc=0:max_leaks=0:log_path=$out.lsan timeout -k 1 $PATIENCE "$@" \
                >"$out.out" 2>"$out.err" </dev/null || STATUS=$?
            FILES=("$out".lsan.*)
            ;;
        valgrind)
            STATUS=0
            timeout -k 1 $PATIENCE "${VALGRIND[@]}" --show-leak-kinds=all --undef-value-errors=no --show-mismatched-frees=no \
                --xml-file="$out.valgrind.%p" "$@" >"$out.out" 2>"$out.err" </dev/null || STATUS=$?
            FILES=("$out".valgrind.*)
            ;;
    esac
}

# One program in all its sizes, and its twin.
row() {
    local name=$1 path=$2 sizes=$3 flags=$4 plugin=$5 kind size out
    [ "$sizes" != - ] || sizes=none
    for kind in bad twin; do
        if ! corpus_program "$name" "$path" "$flags" "$plugin" "$kind" 2>"$OUT.err"; then
            say "FAIL $name does not compile: $(grep -m1 -i error "$OUT.err")" >>"$SCRATCH/broken"
            return
        fi
        for size in $sizes; do
            local argument=()
            [ "$size" = none ] || argument=("$size")
            out=$OUT.$name.$kind.$size
            examine "$out" "$PROGRAM" "${argument[@]}"
            (IFS=$'\t' && printf '%s\n' "$kind"$'\t'"$name"$'\t'"$path"$'\t'"$size"$'\t'"$STATUS${FILES[*]:+$'\t'}${FILES[*]}") >>"$OUT.runs"
        done
    done
}

corpus() {
    local w n
    case $ACTION in
        heapwright) the_command ;;
        valgrind) command_or_package valgrind valgrind ;;
    esac
    leaks rows "${SOURCES[@]}" | while IFS= read -r line; do
        if chosen "${line%%$'\t'*}"; then printf '%s\n' "$line"; fi
    done | if [ ${#names[@]} -eq 0 ]; then slice_lines; else cat; fi >"$SCRATCH/rows"
    [ -s "$SCRATCH/rows" ] || die "no such program: ${names[*]}"
    for ((w = 0; w < JOBS; w++)); do
        OUT=$SCRATCH/worker$w
        (
            n=0
            while IFS=$'\t' read -r -a fields; do
                n=$((n + 1))
                [ $((n % JOBS)) -ne "$w" ] || row "${fields[@]}"
            done <"$SCRATCH/rows"
        ) &
    done
    wait
    touch "$SCRATCH/broken"
    cat "$SCRATCH/broken" # usually nothing
    cat "$SCRATCH"/worker?.runs >"$SCRATCH/runs"
    leaks judge $ACTION "$SCRATCH/runs" $VERBOSE && [ ! -s "$SCRATCH/broken" ]
}

[ $ACTION = programs ] || { corpus; exit; }

# --- real programs -----------------------------------------------------------
# Each is a function that prepares what it needs, outside of any tool, in an
# empty folder, and then says `under PROGRAM...`, once or several times: run so,
# once checked and once in valgrind.

PROGRAMS=(python3 python3_malloc git sqlite3 redis gcc curl perl ruby bash jq xz make)

real_python3() {
    under "$PYTHON" -S "$ROOT/bench/programs/objects.py" 1
    under "$PYTHON" -c 'import json, re, threading, decimal
t = [threading.Thread(target=lambda: json.dumps(list(range(1000)))) for _ in range(4)]
[x.start() for x in t]; [x.join() for x in t]
print(len(re.findall("a+", "baab" * 99)), decimal.Decimal(1) / 7)'
    under "$PYTHON" -c 'import sqlite3
c = sqlite3.connect(":memory:"); c.execute("create table t (a, b)")
c.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(999)))
print(c.execute("select count(*), max(b) from t").fetchall())'
}

real_python3_malloc() {
    export PYTHONMALLOC=malloc
    real_python3
}

real_git() {
    packages git
    export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init -q -b main repo
    for i in 1 2 3 4 5 6; do
        seq "$i" $((i + 400)) >"repo/file$i"
        git -C repo add -A && git -C repo commit -q -m "commit $i"
    done
    echo changed >repo/file3
    under git -C repo log --stat
    under git -C repo status
    under git -C repo diff
    under git -C repo blame file2
    FRESH=clone
    under git clone -q --no-local repo clone
    under git -C repo gc -q --prune=now
}

real_sqlite3() {
    packages sqlite3
    under sqlite3 :memory: 'create table t (a integer primary key, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) insert into t select i, hex(i * i) from n; create index x on t (b); select count(*), max(b) from t where b like "3%"; select * from missing;'
}

real_redis() {
    packages redis-server redis-tools
    PORT=$((20000 + RANDOM % 20000))
    # Beside the server, which is what runs under the tool.
    beside() {
        local i
        for i in $(seq 200); do redis-cli -p $PORT ping 2>/dev/null | grep -q PONG && break; sleep 0.2; done
        redis-benchmark -p $PORT -n 2000 -c 8 -q -r 500 -t set,get,lpush,lrange_100,hset,zadd
        redis-cli -p $PORT flushall async
        redis-cli -p $PORT shutdown nosave
    } >/dev/null 2>&1
    BESIDE=beside
    under redis-server --port $PORT --save '' --appendonly no
    BESIDE=
}

real_gcc() {
    cp "$ROOT/bench/debug/rounds.c" rounds.c
    printf '#include <map>\n#include <string>\nint f(std::map<int, std::string> &m) { m[1] = "x"; return m.size(); }\n' >map.cc
    under gcc -O2 -Wall -c rounds.c
    under g++ -O1 -c map.cc
}

real_curl() {
    packages curl
    seq 20000 >page
    PORT=$((20000 + RANDOM % 20000))
    "$PYTHON" -m http.server --bind 127.0.0.1 $PORT >/dev/null 2>&1 &
    local server=$! i
    for i in $(seq 100); do curl -s -o /dev/null "http://127.0.0.1:$PORT/page" && break; sleep 0.1; done
    under curl -s -o got "http://127.0.0.1:$PORT/page" -o second "http://127.0.0.1:$PORT/none"
    kill $server
}

real_perl() {
    under perl -e 'my %h = map { $_ => [1 .. $_ % 50] } 1 .. 2000; print scalar(keys %h), "\n"; my $s = join ",", sort keys %h; $s =~ s/(\d)1/$1-/g; print length $s, "\n"; eval { die { code => 4 } }; print $@->{code}, "\n"'
    under perl -MList::Util=sum -MPOSIX -e 'my $p = fork; if (!$p) { exit 3 } waitpid $p, 0; print $? >> 8, sum(1 .. 100), floor(2.5), "\n"'
}

real_ruby() {
    packages ruby
    under "$(ruby -e 'puts RbConfig.ruby')" --disable-gems -e 'h = {}; 5000.times { |i| h["k#{i}"] = [i] * (i % 9) }; puts h.size, h.values.flatten.sum; Thread.new { GC.start }.join'
}

real_bash() {
    under bash -c 'declare -A a; for i in {1..800}; do a[k$((i * 7919 % 97))]+=" $i"; done; echo ${#a[@]}; x=$(echo sub | tr a-z A-Z); echo $x; f() { local y=$1; return 3; }; f 1; echo $?; [[ abc =~ (b)(c) ]] && echo ${BASH_REMATCH[1]}'
}

real_jq() {
    packages jq
    under jq -n '[range(2000) | {n: ., s: tostring}] | group_by(.n % 7) | map(length), ("a,b" | split(",")), ([1, 2] | @csv)'
}

real_xz() {
    packages xz-utils
    seq 60000 >lines
    under xz -k -1 lines
    under xz -k -f -T2 lines
    xz -k -f lines
    under xz -d -k -f lines.xz
}

real_make() {
    packages make
    printf 'OBJ := $(foreach n,1 2 3 4 5 6 7 8,o$(n))\nall: $(OBJ)\n\t@echo $(words $(OBJ)) $(shell echo sub)\no%%: \n\t@echo $@ > $@\n.PHONY: all\n' >Makefile
    under make -j2
}

# under PROGRAM...: both ways, one after the other; the reports' files to OURS and THEIRS.
under() {
    local n=$((RUN += 1)) beside=
    echo "  $*" >>"$SCRATCH/said"
    if [ -n "$BESIDE" ]; then $BESIDE & beside=$!; fi
    check "$SCRATCH/$CASE.$n" "$@"
    [ -z "$beside" ] || wait $beside || true
    echo "  checked: status $STATUS" >>"$SCRATCH/said"
    if [ -s "$SCRATCH/$CASE.$n.json" ]; then OURS+="$SCRATCH/$CASE.$n.json "
    else say "FAIL $CASE: no report (status $STATUS) of: $*" | head -c 300 >>"$SCRATCH/broken"; fi
    [ -z "$FRESH" ] || rm -rf "$FRESH"
    if [ -n "$BESIDE" ]; then $BESIDE & beside=$!; fi
    timeout -k 1 $((PATIENCE * 10)) "${VALGRIND[@]}" --show-leak-kinds=definite,indirect,possible --undef-value-errors=no --xml-file="$SCRATCH/$CASE.$n.valgrind.%p" "$@" \
        >"$SCRATCH/out" 2>&1 </dev/null || true
    [ -z "$beside" ] || wait $beside || true
}

command_or_package valgrind valgrind
the_command
failed=0
: >"$SCRATCH/broken"
say '| program | definitely lost, blocks / bytes | valgrind | only we | stacks only valgrind reports |'
say '|---|--:|--:|--:|--:|'
for CASE in "${PROGRAMS[@]}"; do
    chosen "$CASE" || continue
    OURS='' RUN=0 BESIDE='' FRESH=''
    mkdir "$SCRATCH/$CASE.d"
    home=${HOME:-}
    cd "$SCRATCH/$CASE.d"
    "real_$CASE" || { say "FAIL $CASE: could not be prepared"; failed=1; }
    cd "$ROOT"
    export HOME=$home
    unset PYTHONMALLOC GIT_CONFIG_NOSYSTEM
    judged=said
    # Ruby unmaps its heap at the end, and thousands of buffers are lost with it; which of
    # them litter on the stack still keeps differs by the tool. It is shown, not judged.
    [ "$CASE" = ruby ] && judged=shown
    leaks compare "$CASE" "$OURS" "$(echo "$SCRATCH/$CASE".*.valgrind.*)" 2>>"$SCRATCH/$judged" || [ $judged = shown ] || failed=1
done
grep -a '^FAIL' "$SCRATCH/said" "$SCRATCH/broken" -h && failed=1 || true
if grep -q '^true' "$SCRATCH/said"; then
    say
    say "Leaks of these programs themselves, as valgrind agrees:"
    grep '^true' "$SCRATCH/said" | sed 's/^true /- /'
fi
[ $failed -eq 0 ]
