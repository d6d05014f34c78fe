#!/usr/bin/env bash
# The misuse corpus (corpus/): every bad program is reported by the debug mode,
# under the right heading and in the right words; its twin, which differs in
# that one line, and the hard right programs of corpus/right are not, and do
# what they do without the preload. The programs of corpus/functions, whose bug is in what a
# function of the C library is given, run on the library of `heapwright check`, and must be
# found without a guard. So are those of corpus/reads, whose bug is a read: by a function; and of those whose
# read is in a loop of their own nine in ten must be found by default, and all that guard=all finds.
#
#   ci/corpus.sh [NAME...]             two passes: guard=all, and the default; the
#                                      right programs also under harder options. The default must find
#                                      what guard=all finds
#   ci/corpus.sh -v                    also what passed, and which reads are missed
#   ci/corpus.sh --default-only        leave out guard=all
#   ci/corpus.sh --without DETECTION   turn one detection off: the programs that
#                                      only it finds must now be missed
#   ci/corpus.sh --hardened            instead: right programs and twins under mode=hardened and
#                                      hardened:full, with guards and without; nothing may be reported
#   ci/corpus.sh --asan                check the corpus itself, with the
#                                      compiler's AddressSanitizer, not heapwright
#   ci/corpus.sh --list                the headings and how many programs each has
#
# NAME is a program's name or a shell pattern of names. JOBS (2) run at once. Without names,
# HEAPWRIGHT_SLICE takes a sixth of the programs, the first of each heading, and all of corpus/functions and corpus/reads.
# Programs are built once, into $CARGO_TARGET_DIR/corpus, under a name that has
# a hash of their contents in it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# What --without proves: detection, options, and the programs (as HEADING, or
# HEADING+guard and HEADING+bounds for those which need them) that no other detection finds.
# The second column keeps a neighbour from helping: guards see writes, too.
WITHOUT='
double-free  mode=debug,guard=never    double-free realloc-after-free
fill         mode=debug,guard=never    write-after-free
canary       mode=debug,detect=-guard  buffer-overflow buffer-underflow
bounds       mode=debug,detect=-guard  buffer-overflow+bounds buffer-underflow+bounds use-after-free+bounds
guard        mode=debug,guard=all      buffer-overflow+guard buffer-underflow+guard use-after-free+guard
mismatch     mode=debug                allocator-mismatch
size         mode=debug                size-mismatch alignment-mismatch
'

# What AddressSanitizer calls it. (It says SEGV or BUS of addresses where it has no shadow.)
ASAN='
double-free         attempting double-free
invalid-free        attempting free on address|SEGV|BUS
interior-free       attempting free on address
size-mismatch       new-delete-type-mismatch
alignment-mismatch  new-delete-type-mismatch
allocator-mismatch  alloc-dealloc-mismatch
buffer-overflow     heap-buffer-overflow
buffer-underflow    heap-buffer-overflow
write-after-free    heap-use-after-free
use-after-free      heap-use-after-free|malloc_usable_size
invalid-realloc     attempting free on address
realloc-after-free  attempting double-free|heap-use-after-free
'

PATIENCE=20 WAIT=300 JOBS=${JOBS:-2} ACTION=check DETECTION='' PASSES='guard default' HARDER='never little plain' VERBOSE=0
names=()
while [ $# -gt 0 ]; do
    case $1 in
        -v) VERBOSE=1 ;;
        --list | --asan) ACTION=${1#--} ;;
        --hardened) ACTION=hardened PASSES='light full light-never full-never' ;;
        --default-only) PASSES=default ;;
        --without)
            [ $# -ge 2 ] || die "--without needs the name of a detection"
            ACTION=without DETECTION=$2
            shift
            ;;
        -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
        -*) die "unknown option $1" ;;
        *) names+=("$1") ;;
    esac
    shift
done

# The programs' first lines, as rows: name, path, heading ("right" for programs
# without a bug), sizes, words, needs, flags, stack, plugin, asan, run; "-" for
# what is not given.
shopt -s nullglob
SOURCES=(corpus/*.c corpus/*.cc corpus/*.rs corpus/functions/*.c corpus/functions/*.cc corpus/right/*.c corpus/right/*.cc corpus/right/*.rs)
awk '
    function row() {
        if (path == "") return
        name = path; sub(/.*\//, "", name); sub(/\.[a-z]+$/, "", name)
        printf "%s\t%s", name, path
        split("finds sizes words needs flags stack plugin asan run", keys, " ")
        for (k = 1; k in keys; k++) printf "\t%s", (keys[k] in value) ? value[keys[k]] : "-"
        printf "\n"
    }
    FNR == 1 { row(); path = FILENAME; split("", value); head = 1; if (path ~ /\/right\//) value["finds"] = "right" }
    head && /^\/\/ [a-z]+: / { key = $2; sub(/:$/, "", key); text = $0; sub(/^\/\/ [a-z]+: */, "", text); value[key] = text; next }
    !/^\/\// { head = 0 }
    END { row() }
' $(printf '%s\n' "${SOURCES[@]}" | grep -v '/corpus\.[a-z]*$') | sort >"$SCRATCH/all"

# The programs of corpus/reads, which are some to a file: a line before each.
#   // read: NAME HEADING function|loop
# The name is the file's argument.
PYTHON=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || PYTHON=
if [ -n "$PYTHON" ]; then
    PYTHON_INCLUDES=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -f "$PYTHON_INCLUDES/Python.h" ] || PYTHON=
fi
READS=(corpus/reads/*.c corpus/reads/*.cc corpus/reads/*.rs)
if [ -z "$PYTHON" ] || [ $ACTION = asan ]; then
    [ $ACTION = asan ] || say "no python3 with Python.h: its extension's reads are left out"
    READS=(corpus/reads/reads.c corpus/reads/*.cc corpus/reads/*.rs)
fi
awk '$1 == "//" && $2 == "read:" {
    file = FILENAME; sub(/.*\//, "", file); name = "read-" file "-" $3; gsub(/\./, "-", name)
    printf "%s\t%s\t%s\t%s\t-\t%s\t-\t-\t-\t-\t-\n", name, FILENAME, $4, $3, $5 == "function" ? "bounds" : "guards"
}' "${READS[@]}" >>"$SCRATCH/all"

twice=$(cut -f1 "$SCRATCH/all" | uniq -d)
[ -z "$twice" ] || die "two programs have one name: $twice"

if [ $ACTION = list ]; then
    printf '| heading | programs | of which need guards | C | C++ | Rust | runs |\n|---|---|---|---|---|---|---|\n'
    awk -F '\t' '
        $2 ~ /\/functions\// { f[$3]++; next }
        $2 ~ /\/reads\// { r[$6]++; next }
        { sub(/\|.*/, "", $3); n[$3]++; t = $3 == "right" ? "" : "t"
          if ($6 ~ /guard=all/) g[$3]++
          l = $2; sub(/.*\./, "", l); by[$3, l]++
          runs[$3] += $4 == "-" ? 1 : split($4, parts, " ") }
        function line(h, label) { printf "| %s | %d | %d | %d | %d | %d | %d |\n", label, n[h], g[h], by[h, "c"], by[h, "cc"], by[h, "rs"], runs[h] }
        END {
            split("double-free invalid-free interior-free size-mismatch alignment-mismatch allocator-mismatch buffer-overflow buffer-underflow write-after-free use-after-free invalid-realloc realloc-after-free", order, " ")
            for (i = 1; i in order; i++) {
                h = order[i]; line(h, h); n["all"] += n[h]; g["all"] += g[h]; runs["all"] += runs[h]
                by["all", "c"] += by[h, "c"]; by["all", "cc"] += by[h, "cc"]; by["all", "rs"] += by[h, "rs"]
            }
            line("all", "all, each with its twin"); line("right", "right programs")
            printf "\ncorpus/functions: %d of buffer-overflow, %d of buffer-underflow, %d of use-after-free\n", f["buffer-overflow"], f["buffer-underflow"], f["use-after-free"]
            printf "corpus/reads: %d by functions, %d by loops\n", r["bounds"], r["guards"]
        }' "$SCRATCH/all"
    exit 0
fi

# Which of them: the names given, or this slice.
while IFS= read -r line; do
    name=${line%%$'\t'*}
    if [ ${#names[@]} -eq 0 ]; then
        number=$((${number:-0} + 1))
        heading=$(cut -f3 <<<"$line")
        if in_slice $number || [[ $line == */functions/* || $line == */reads/* ]] || [[ " ${headings:-} " != *" $heading "* ]]; then printf '%s\n' "$line"; fi
        headings="${headings:-} $heading"
        continue
    fi
    for pattern in "${names[@]}"; do
        # shellcheck disable=SC2053
        if [[ $name == $pattern ]]; then printf '%s\n' "$line"; break; fi
    done
done <"$SCRATCH/all" >"$SCRATCH/rows"
# (Their twins under mode=hardened would say nothing that the others do not.)
[ $ACTION != hardened ] || { grep -v /reads/ "$SCRATCH/rows" >"$SCRATCH/some" || true; mv "$SCRATCH/some" "$SCRATCH/rows"; }
[ -s "$SCRATCH/rows" ] || die "no such program: ${names[*]}"

if [ $ACTION = without ]; then
    read -r _ OPTIONS DEPENDENT < <(grep "^$DETECTION  *" <<<"$WITHOUT") || die "no detection is called $DETECTION"
    awk -F '\t' -v wanted=" $DEPENDENT " '
        { key = $3 ($6 ~ /guard=all/ ? "+guard" : $6 ~ /bounds/ ? "+bounds" : "") } index(wanted, " " key " ")' "$SCRATCH/rows" >"$SCRATCH/some"
    mv "$SCRATCH/some" "$SCRATCH/rows"
    [ -s "$SCRATCH/rows" ] || die "no program depends on $DETECTION"
fi

[ $ACTION = asan ] || preload_library
[ $ACTION = asan ] || ! grep -q -E '/(functions|reads)/' "$SCRATCH/rows" || check_library
CACHE=$CARGO_TARGET_DIR/corpus
mkdir -p "$CACHE"

corpus_tools
[ $ACTION != asan ] || SANITIZE=address

# run OUT PREFIX SETTINGS... -- PROGRAM ARGUMENTS...: stdout and stderr to OUT.out
# and OUT.err, the status to STATUS. PREFIX is a shell text in front ("-": none). A run may use PATIENCE seconds of processor
# time, which do not depend on what else the machine does; WAIT, by the clock, ends what waits for ever.
run() {
    local out=$1 prefix=$2
    shift 2
    [ "$prefix" != - ] || prefix=
    STATUS=0
    local settings=()
    while [ "$1" != -- ]; do settings+=("$1"); shift; done
    shift
    (
        cd "$out.d" && ulimit -c 0 -t $PATIENCE
        exec timeout -k 1 $WAIT bash -c "$prefix"' exec env "$@"' sh "${settings[@]}" "$@"
    ) >"$out.out" 2>"$out.err" </dev/null || STATUS=$?
}

# Every line a worker says: FAIL or ok or miss, pass, kind, name and size, words.
verdict() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$OUT.verdicts"; }

# found HEADING WORDS STACK: empties WHY if the report in OUT.err is the right one.
found() {
    local heading=$1 words=$2 stack=$3 pass=$4 first
    first=$(grep -a -o -m1 'heapwright: [a-z-]*: .*' "$OUT.err" || true)
    WHY=
    if [ $STATUS -eq 124 ] || [ $STATUS -eq 137 ]; then WHY="did not end in $PATIENCE s of processor time, or $WAIT s"; return; fi
    if [ -z "$first" ]; then WHY="no report (status $STATUS)"; return; fi
    local is=${first#heapwright: }
    is=${is%%:*}
    # A guard sees the write itself, and may call it what a read would be called.
    [ "$heading" = write-after-free ] && [ "$is" = use-after-free ] && is=write-after-free
    if [[ "|$heading|" != *"|$is|"* ]]; then WHY="reported as: $first"; return; fi
    if [ "$words" != - ] && [[ $first != *"$words"* ]]; then WHY="no \"$words\" in: $first"; return; fi
    if [ "$stack" != - ] && ! grep -a -q -w -- "$stack" "$OUT.err"; then WHY="no $stack in its stacks"; fi
}

# unharmed: empties WHY if a right program did what it does without us.
unharmed() {
    local plain=$1
    WHY=
    if [ $STATUS -ne "$(cat "$plain.status")" ]; then WHY="status $STATUS: $(tail -1 "$OUT.err")"; return; fi
    if grep -a -q 'heapwright:' "$OUT.err"; then WHY="reported: $(grep -a -m1 'heapwright:' "$OUT.err")"; return; fi
    cmp -s "$plain.out" "$OUT.out" || { WHY="another output"; return; }
    cmp -s "$plain.err" "$OUT.err" || WHY="another error output: $(tail -1 "$OUT.err")"
}

# Sets OPTIONS to what a pass means.
options_of() {
    case $1 in
        guard) OPTIONS=mode=debug,guard=all ;;
        default | loop) OPTIONS=mode=debug ;;
        loop-all) OPTIONS=mode=debug,guard=all ;;
        # What the right programs must also bear.
        function | never) OPTIONS=mode=debug,guard=never ;;
        little) OPTIONS=mode=debug,guard=all,memory=2m,slots=4 ;;
        light) OPTIONS=mode=hardened ;;
        full) OPTIONS=mode=hardened:full ;;
        light-never) OPTIONS=mode=hardened,guard=never ;;
        full-never) OPTIONS=mode=hardened:full,guard=never ;;
        plain) OPTIONS=mode=debug,traces=0,detect=-guard,detect=-fill ;;
    esac
}

# built_as NAME PATH: what a program is built as: those of corpus/reads are in one file.
built_as() { if [[ $2 == */reads/* ]]; then basename "$2"; else echo "$1"; fi; }

# One program in all its sizes and passes.
row() {
    local name=$1 path=$2 heading=$3 sizes=$4 words=$5 needs=$6 flags=$7 stack=$8 plugin=$9 asan=${10} prefix=${11}
    local size kind kinds='bad twin' bad='' twin='' pass WHY label
    [ "$heading" = right ] || [ $ACTION = hardened ] && kinds=twin
    [ $ACTION = without ] && kinds=bad
    local so=${HEAPWRIGHT_SO:-}
    [[ $path != @(*/functions/*|*/reads/*) ]] || so=$HEAPWRIGHT_CHECK_SO
    for kind in $kinds; do
        if ! corpus_program "$(built_as "$name" "$path")" "$path" "$flags" "$plugin" "$kind" 2>"$OUT.err"; then
            verdict FAIL build "$kind" "$name" "does not compile: $(grep -m1 -i error "$OUT.err")"
            return
        fi
        printf -v "$kind" %s "$PROGRAM"
    done
    [ "$sizes" != - ] || sizes=none
    for size in $sizes; do
        label=$name
        local argument=()
        if [ "$size" != none ]; then argument=("$size"); label="$name $size"; fi

        if [ $ACTION = asan ]; then
            local settings=(ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0:handle_abort=0)
            if [ -n "$bad" ]; then
                run "$OUT" "$prefix" "${settings[@]}" -- "$bad" "${argument[@]}"
                local expected said
                expected=$(sed -n -E "s/^(${heading%%|*})  *//p" <<<"$ASAN")
                said=$(grep -a -m1 'ERROR: AddressSanitizer' "$OUT.err" | cut -d: -f2- || true)
                if [[ $asan == blind* ]]; then verdict blind asan bad "$label" "${said:-}"
                elif grep -q -E "$expected" <<<"$said"; then verdict ok asan bad "$label" "$said"
                else verdict FAIL asan bad "$label" "expected $expected: ${said:-nothing, status $STATUS}"; fi
            fi
            if [[ $asan != alien* ]]; then
                run "$OUT" "$prefix" "${settings[@]}" -- "$twin" "${argument[@]}"
                if [ $STATUS -eq 0 ] && ! grep -a -q 'Sanitizer' "$OUT.err"; then verdict ok asan twin "$label" ''
                else verdict FAIL asan twin "$label" "status $STATUS $(grep -a -m1 'ERROR' "$OUT.err" || tail -1 "$OUT.err")"; fi
            fi
            continue
        fi

        if [ $ACTION = without ]; then
            # Only what is found with the detection says something without it.
            run "$OUT" "$prefix" "LD_PRELOAD=$so" "HEAPWRIGHT=$OPTIONS" -- "$bad" "${argument[@]}"
            if ! grep -a -q -E "heapwright: ($heading):" "$OUT.err"; then
                verdict miss without bad "$label" "not found with $DETECTION either (status $STATUS)"
                continue
            fi
            run "$OUT" "$prefix" "LD_PRELOAD=$so" "HEAPWRIGHT=$OPTIONS,detect=-$DETECTION" -- "$bad" "${argument[@]}"
            if grep -a -q -E "heapwright: ($heading):" "$OUT.err"; then verdict FAIL without bad "$label" "found without $DETECTION"
            else verdict ok without bad "$label" "missed (status $STATUS)"; fi
            continue
        fi

        # What the right program does without us: once for each build.
        local plain=$twin.plain-$size
        if ! [ -f "$plain.status" ]; then
            run "$OUT" "$prefix" -- "$twin" "${argument[@]}"
            if [ $STATUS -ne 0 ]; then
                verdict FAIL plain twin "$label" "status $STATUS without the preload: $(tail -1 "$OUT.err")"
                continue
            fi
            cp "$OUT.out" "$plain.out" && cp "$OUT.err" "$plain.err" && echo $STATUS >"$plain.status"
        fi
        local passes=$PASSES OPTIONS
        [ $ACTION = check ] && [ "$heading" = right ] && passes+=" $HARDER"
        [ "$so" = "$HEAPWRIGHT_SO" ] || [ $ACTION = hardened ] || passes=function
        [[ $path != */reads/* || $needs = bounds ]] || passes='loop-all loop'
        local by_all=
        for pass in $passes; do
            options_of "$pass"
            if [ -n "$bad" ]; then
                run "$OUT" "$prefix" "LD_PRELOAD=$so" "HEAPWRIGHT=$OPTIONS" -- "$bad" "${argument[@]}"
                found "$heading" "${words//%SIZE%/$size}" "$stack" "$pass"
                if [ -z "$WHY" ]; then verdict ok "$pass" bad "$label" ''
                elif [[ $pass == loop* && -z $by_all ]]; then verdict miss "$pass" bad "$label" "$heading: $WHY"
                else verdict FAIL "$pass" bad "$label" "$heading: $WHY"; fi
                [ "$pass" != loop-all ] || [ -n "$WHY" ] || by_all=yes
            fi
            run "$OUT" "$prefix" "LD_PRELOAD=$so" "HEAPWRIGHT=$OPTIONS" -- "$twin" "${argument[@]}"
            unharmed "$plain"
            kind=twin
            [ "$heading" = right ] && kind=right
            if [ -z "$WHY" ]; then verdict ok "$pass" $kind "$label" ''
            else verdict FAIL "$pass" $kind "$label" "$WHY"; fi
        done
    done
}

worker() {
    local n=0 fields
    OUT=$SCRATCH/worker$1
    mkdir -p "$OUT.d"
    : >"$OUT.verdicts"
    while IFS= read -r line; do
        n=$((n + 1))
        [ $((n % JOBS)) -eq "$1" ] || continue
        IFS=$'\t' read -r -a fields <<<"$line"
        row "${fields[@]}"
    done <"$SCRATCH/rows"
}

began=$SECONDS
# Those of one file are built once, before two workers would do it at a time.
while IFS= read -r path; do
    for kind in bad twin; do
        corpus_program "$(built_as - "$path")" "$path" - - $kind || die "$path does not compile"
    done
done < <(cut -f2 "$SCRATCH/rows" | grep /reads/ | sort -u)
for ((w = 0; w < JOBS; w++)); do worker $w 2>"$SCRATCH/worker$w.noise" & done
wait
cat "$SCRATCH"/worker*.verdicts | sort -t $'\t' -k4,4 -k2,2 >"$SCRATCH/verdicts"

show() { awk -F '\t' -v which="$1" '$1 == which { printf "%-5s %-8s %-5s %s%s\n", $1, $2, $3, $4, ($5 == "" ? "" : ": " $5) }' "$SCRATCH/verdicts"; }
[ $VERBOSE -eq 0 ] || { show ok; show miss; show blind; }
show FAIL
# count VERDICT-PATTERN PASS KIND-PATTERN
count() { awk -F '\t' -v v="$1" -v p="$2" -v k="$3" '$1 ~ "^(" v ")$" && $2 == p && $3 ~ "^(" k ")$"' "$SCRATCH/verdicts" | wc -l; }

say "corpus: $(wc -l <"$SCRATCH/rows") programs, $((SECONDS - began)) s"
case $ACTION in
    check)
        for pass in $PASSES; do
            options_of "$pass"
            bad=$(count 'ok|FAIL' "$pass" bad)
            say "$OPTIONS: found $(count ok "$pass" bad) of $bad runs;" \
                "twins reported $(count FAIL "$pass" twin) of $(count 'ok|FAIL' "$pass" twin), right programs harmed $(count FAIL "$pass" right) of $(count 'ok|FAIL' "$pass" right)"
        done
        [ "$(count 'ok|FAIL' function bad)" = 0 ] ||
            say "by functions: found $(count ok function bad) of $(count 'ok|FAIL' function bad) runs," \
                "twins reported $(count FAIL function twin) of $(count 'ok|FAIL' function twin)"
        loops=$(count 'ok|FAIL|miss' loop bad) by_default=$(count ok loop bad)
        [ "$loops" = 0 ] ||
            say "reads by loops: found $by_default of $loops by default, $(count ok loop-all bad) by guard=all," \
                "twins reported $(($(count FAIL loop twin) + $(count FAIL loop-all twin))) of $(($(count 'ok|FAIL' loop twin) + $(count 'ok|FAIL' loop-all twin)))"
        # (A few alone prove nothing about nine in ten.)
        [ "$loops" -lt 20 ] || [ $((by_default * 10)) -ge $((loops * 9)) ] || die "nine in ten must be found"
        for pass in $HARDER; do
            options_of "$pass"
            say "$OPTIONS: right programs harmed $(count FAIL "$pass" right) of $(count 'ok|FAIL' "$pass" right)"
        done
        ;;
    hardened)
        for pass in $PASSES; do
            options_of "$pass"
            say "$OPTIONS: twins disturbed $(count FAIL "$pass" twin) of $(count 'ok|FAIL' "$pass" twin), right programs $(count FAIL "$pass" right) of $(count 'ok|FAIL' "$pass" right)"
        done
        ;;
    without)
        say "without $DETECTION: missed $(count ok without bad) of the $(count 'ok|FAIL' without bad) runs that are found with it ($DEPENDENT), $(count miss without bad) are not"
        # A proof of nothing is none.
        [ "$(count ok without bad)" -gt 0 ] || exit 1
        ;;
    asan) say "AddressSanitizer: reported $(count ok asan bad) of $(count 'ok|FAIL' asan bad) runs, blind to $(count blind asan bad) more; twins reported $(count FAIL asan twin) of $(count 'ok|FAIL' asan twin)" ;;
esac
! grep -q '^FAIL' "$SCRATCH/verdicts"
