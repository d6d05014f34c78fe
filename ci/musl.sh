#!/usr/bin/env bash
# musl: the library under the preload on a musl system (a root with musl, the library and a busybox that is built for musl
# from Debian's source, once), in C programs that it is linked into statically, and as the global allocator of static Rust
# programs, for x86-64 and aarch64 (under qemu-user); the libraries with bounds, and the command, with programs for musl; threads
# that end, forks, signals, small stacks, and stack traces. What programs print must be the same as with musl's own malloc.
# HEAPWRIGHT_SLICE 0 to 2 takes x86-64's libraries, 3 to 5 static Rust programs and aarch64; both the unit tests of half of the crates.
#
# ci/musl-figures.sh measures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/musl-common.sh
. ci/aarch64-system.sh

packages musl musl-dev musl-tools qemu-user linux-libc-dev bzip2
musl_targets
WORK=$CARGO_TARGET_DIR/musl
mkdir -p "$WORK"

failures=0
# verdict NAME STATUS [FILE...]: one row, and the ends of files if it failed.
verdict() {
    if [ "$2" -eq 0 ]; then
        printf 'ok   %s\n' "$1"
    else
        printf 'FAIL %s\n' "$1"
        tail -qn 5 "${@:3}" </dev/null | sed 's/^/     /'
        failures=$((failures + 1))
    fi
}
# same NAME WANTED COMMAND...: the command ends well and prints what is wanted, and nothing on stderr.
same() {
    local name=$1 wanted=$2 code=0
    shift 2
    timeout 120 "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || code=$?
    [ $code -ne 0 ] || { [ "$(cat "$SCRATCH/out")" = "$wanted" ] && [ ! -s "$SCRATCH/err" ]; } || code=1
    verdict "$name" $code "$SCRATCH/out" "$SCRATCH/err"
}

# Of the tests' programs those that musl's headers and its own malloc are enough for.
PROGRAMS=(alignment_sweep calloc_zero free_errno malloc_basic signals thread_handover thread_keys thread_storm thread_detached
    cancelled_threads atfork_handlers fork_from_threads fork_memory fork_storm)
# build NAME FLAGS... : a program of the tests, with the compiler in MUSL_CC.
build() {
    local name=$1
    shift
    "$MUSL_CC" -std=gnu11 -O1 -g -w -pthread -fno-builtin -Iinclude -o "$SCRATCH/$name" \
        "crates/heapwright-malloc/tests/programs/${name%%+*}.c" "$@"
}
# c_programs RUN... : the programs by themselves, static, static-pie, and preloaded in the modes; RUN is an emulator, with which
# only some are run.
c_programs() {
    local program options
    for program in "${PROGRAMS[@]}"; do
        build "$program"
        build "$program+static" -static "$MUSL_LIBRARIES/libheapwright.a"
        # (gcc's -static-pie, said to the linker: the compilers for musl pass it on to none.)
        build "$program+pie" -nostartfiles -fPIE -Wl,-static,-pie,--no-dynamic-linker,-z,text "$MUSL_START"/{rcrt1,crti}.o \
            "$MUSL_LIBRARIES/libheapwright.a" "$MUSL_START/crtn.o"
        if [ $# -gt 0 ] && ! timeout 120 "$@" "$SCRATCH/$program" >/dev/null 2>&1 </dev/null; then
            say "skip $program: fails under the emulator by itself"
            continue
        fi
        same "$program: musl's own malloc" "" "$@" "$SCRATCH/$program"
        same "$program: static" "" env HEAPWRIGHT="$WINDOW" "$@" "$SCRATCH/$program+static"
        same "$program: static-pie" "" env HEAPWRIGHT="$WINDOW" "$@" "$SCRATCH/$program+pie"
        for options in mode=fast mode=debug mode=hardened cache=percpu; do
            preloaded "$program: preloaded, $options" $options "$MUSL_LIBRARIES/libheapwright.so" "$@" "$SCRATCH/$program"
        done
    done
}
# preloaded NAME OPTIONS LIBRARY [RUN...] PROGRAM: the library must be the program's alone, not an emulator's, which hands its other
# variables on. (HEAPWRIGHT is one of those: a comma ends what qemu's -E sets.)
preloaded() {
    local name=$1 options=$2${WINDOW:+,$WINDOW} library=$3
    shift 3
    if [ $# -eq 1 ]; then
        same "$name" "" env HEAPWRIGHT="$options" LD_PRELOAD="$library" "$1"
    else
        same "$name" "" env HEAPWRIGHT="$options" "${@:1:$#-1}" -E LD_PRELOAD="$library" "${@: -1}"
    fi
}
WINDOW=

if in_half 0; then
    say "compile for $MUSL"
    musl_libraries $MUSL musl-gcc heapwright-malloc heapwright-hardened heapwright-check
    MUSL_CC=$WORK/musl-cc
    MUSL_START=/usr/lib/x86_64-linux-musl
    musl_compiler "$MUSL_CC" musl-gcc /usr/include "/usr/include/$(uname -m)-linux-gnu"

    say "C programs: preloaded, static, static-pie"
    c_programs
    for library in hardened check; do
        for program in thread_storm thread_detached fork_memory signals; do
            preloaded "$program: libheapwright-$library.so" "" "$MUSL_LIBRARIES/libheapwright_$library.so" "$SCRATCH/$program"
        done
    done
    # Restartable sequences, which musl registers none for: with cache=auto all threads that hand over share caches at the end. Where the
    # kernel refuses them the programs go by locks.
    build caches_hand_over
    same "caches_hand_over: sequences" "" env HEAPWRIGHT=cache=auto LD_PRELOAD="$MUSL_LIBRARIES/libheapwright.so" \
        "$SCRATCH/caches_hand_over" 3 shares
    cc -O1 -o "$SCRATCH/kernels" ci/kernels.c
    for options in cache=auto cache=percpu; do
        same "caches_hand_over: no sequences, $options" "" "$SCRATCH/kernels" rseq ENOSYS \
            env HEAPWRIGHT=$options LD_PRELOAD="$MUSL_LIBRARIES/libheapwright.so" "$SCRATCH/caches_hand_over" 3
    done

    say "a root with musl, the library and busybox"
    musl_busybox
    root=$SCRATCH/root
    mkdir -p "$root/lib" "$root/bin" "$root/proc" "$root/tmp"
    cp -L /lib/ld-musl-x86_64.so.1 "$root/lib/"
    cp "$MUSL_BUSYBOX" "$root/bin/busybox"
    cp "$MUSL_LIBRARIES"/libheapwright{,_hardened,_check}.so "$root/lib/"
    for name in sh awk sort seq find gzip gunzip sha256sum tar grep wc env tr sed; do ln -s busybox "$root/bin/$name"; done
    cat >"$root/bin/work" <<'WORK'
awk 'BEGIN { for (i = 0; i < 60000; i++) a[i % 3000] = a[i % 3000] i; for (k in a) n += length(a[k]); print n }'
for i in $(seq 100); do x=$x$(echo $i); done
echo ${#x}
seq 20000 | sort -r | gzip | gunzip | sha256sum
tar cf - bin | tar tf - | wc -l
find / -path /proc -prune -o -print | grep -c bin
WORK
    # Variables are set inside, for the host's own programs must not see them.
    IN_ROOT=(env -i "$(command -v chroot)" "$root" /bin/env PATH=/bin)
    wanted=$("${IN_ROOT[@]}" sh /bin/work)
    for options in mode=fast mode=debug mode=hardened cache=percpu cache=shared:2; do
        same "busybox: preloaded, $options" "$wanted" \
            "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=$options sh /bin/work
    done
    for library in hardened check; do
        same "busybox: libheapwright-$library.so" "$wanted" "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright_$library.so sh /bin/work
    done
    # It must be the library that answers, or the rows prove nothing.
    "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=stats=exit seq 3 2>"$SCRATCH/err" >/dev/null
    status=0
    [ "$(grep -c 'live blocks' "$SCRATCH/err")" -eq 1 ] || status=1
    verdict "the preload takes effect" $status "$SCRATCH/err"

    say "stack traces"
    cat >"$SCRATCH/twice.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
static char *volatile kept;
__attribute__((noinline)) char *make_it(void) { return malloc(40); }
__attribute__((noinline)) void end_it(char *block) { free(block); }
__attribute__((noinline)) void lose_it(void) { kept = malloc(100); kept = NULL; }
__attribute__((noinline)) void fill_it(char *text) { kept = make_it(); strcpy(kept, text); end_it(kept); }
static void *work(void *nothing) { kept = make_it(); end_it(kept); end_it(kept); kept = NULL; return nothing; }
int main(int count, char **words)
{
    pthread_t thread;
    lose_it();
    if (count > 1)
        fill_it(words[1]);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
C
    TRACED=(-O1 -w -g -fno-builtin -fomit-frame-pointer -fno-optimize-sibling-calls)
    "$MUSL_CC" "${TRACED[@]}" -o "$SCRATCH/twice" "$SCRATCH/twice.c"
    "$MUSL_CC" "${TRACED[@]}" -static -o "$SCRATCH/twice-static" "$SCRATCH/twice.c" "$MUSL_LIBRARIES/libheapwright.a"
    # traces NAME PROGRAM COMMAND...: a double free is reported, and its traces have a call in each function of the program, which has no
    # frame pointers.
    traces() {
        local name=$1 program=$2 function status=0
        shift 2
        HEAPWRIGHT=mode=debug "$@" >"$SCRATCH/out" 2>&1 </dev/null || true
        # shellcheck disable=SC2046 # addresses are words
        addr2line -f -e "$program" $(sed -nE "s|.*\($program\+(0x[0-9a-f]+)\).*|\1|p" "$SCRATCH/out") </dev/null >"$SCRATCH/names"
        for function in make_it end_it work; do grep -qx $function "$SCRATCH/names" || status=1; done
        grep -q 'double-free' "$SCRATCH/out" || status=1
        verdict "$name" $status "$SCRATCH/out"
    }
    traces "preloaded" "$SCRATCH/twice" env LD_PRELOAD="$MUSL_LIBRARIES/libheapwright.so" "$SCRATCH/twice"
    traces "static" "$SCRATCH/twice-static" "$SCRATCH/twice-static"

    say "the command, with a program for musl"
    cargo build --quiet --locked -p heapwright-cli
    COMMAND=$CARGO_TARGET_DIR/debug/heapwright
    # says NAME WANTED... -- COMMAND... : what is printed has each of the texts in it.
    says() {
        local name=$1 status=0 text texts=()
        shift
        while [ "$1" != -- ]; do texts+=("$1"); shift; done
        timeout 120 "${@:2}" >"$SCRATCH/out" 2>&1 </dev/null || true
        for text in "${texts[@]}"; do grep -qF -- "$text" "$SCRATCH/out" || { echo "no '$text'" >>"$SCRATCH/out"; status=1; }; done
        verdict "$name" $status "$SCRATCH/out"
    }
    export HEAPWRIGHT_LIBRARY=$MUSL_LIBRARIES/libheapwright.so
    says "doctor" "heapwright takes effect" -- "$COMMAND" doctor "$SCRATCH/twice"
    says "run" "peak" -- "$COMMAND" run --stats -- "$SCRATCH/thread_storm"
    says "run --hardened" "was freed before" -- "$COMMAND" run --hardened -- "$SCRATCH/twice"
    HEAPWRIGHT_LIBRARY=$MUSL_LIBRARIES/libheapwright_check.so
    says "check" "double-free" "in make_it" "in end_it" "in work" "twice.c:" "by strcpy of 54 bytes" "in fill_it" \
        "100 bytes in 1 block" "in lose_it" -- "$COMMAND" check -- "$SCRATCH/twice" "a text that is longer than the block that it goes to."
    unset HEAPWRIGHT_LIBRARY
    says "doctor, with the library for glibc" "it uses the musl C library" -- "$COMMAND" doctor "$SCRATCH/twice"

    say "the tests of the libraries"
    # The tests are this system's, their programs musl's. What is left out is glibc's own, or C++'s, which has no compiler here.
    (
        export CC=$MUSL_CC HEAPWRIGHT_TEST_LIBRARY=$MUSL_LIBRARIES
        export HEAPWRIGHT_HARDENED_SO=$MUSL_LIBRARIES/libheapwright_hardened.so HEAPWRIGHT_CHECK_SO=$MUSL_LIBRARIES/libheapwright_check.so
        cargo test --quiet --locked -p heapwright-hardened --test bounds -- \
            --skip the_names_are_those_that_are_tested --skip it_needs_the_c_library_alone --skip installed --skip set_uid --skip a_thread_that_began_before_the_library &&
            # (musl itself reads the lists that lead nowhere, and ends.)
            cargo test --quiet --locked -p heapwright-check --test reads -- --skip containers_that_are_annotated \
                --skip the_kernel_refuses_what_it_refused
    ) || failures=$((failures + 1))
fi

if in_half 1; then
    say "static Rust programs"
    musl_loads heapwright-debug "$SCRATCH/loads"
    musl_loads "" "$SCRATCH/loads-plain"
    # Its own linker and start files come with the compiler.
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld musl_loads heapwright-debug "$SCRATCH/loads-aarch64" $MUSL_AARCH64
    # sum COMMAND...: what a load has computed, the last number that it prints.
    sum() { "$@" | awk '{ print $4 }'; }
    export -f sum
    for load in tree words vectors handover boxes buffers growing ends; do
        wanted=$(sum "$SCRATCH/loads-plain" $load 1)
        for options in mode=fast mode=debug cache=shared:2 cache=percpu; do
            same "x86-64: $load, $options" "$wanted" env HEAPWRIGHT=$options bash -c 'sum "$@"' - "$SCRATCH/loads" $load 1
        done
        # The window is small for qemu: see ci/aarch64.sh.
        [[ $load =~ ^(buffers|growing)$ ]] ||
            same "aarch64: $load" "$wanted" env HEAPWRIGHT=window=4g bash -c 'sum "$@"' - qemu-aarch64 "$SCRATCH/loads-aarch64" $load 1
    done
    same "aarch64: ends, mode=debug" "$(sum "$SCRATCH/loads-plain" ends 1)" \
        env HEAPWRIGHT=window=4g,mode=debug bash -c 'sum "$@"' - qemu-aarch64 "$SCRATCH/loads-aarch64" ends 1

    say "aarch64: C programs, preloaded, static, static-pie"
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    musl_aarch64
    CC_aarch64_unknown_linux_musl=$MUSL_AARCH64_CC \
        musl_libraries $MUSL_AARCH64 "$MUSL_AARCH64_CC" heapwright-malloc heapwright-hardened heapwright-check
    MUSL_CC=$MUSL_AARCH64_CC
    MUSL_START=$MUSL_ROOT/usr/lib/aarch64-linux-musl
    # (The emulator keeps some 300 KiB for each thread that there was, and 24 bytes for each page of the window.)
    EMULATOR_KIB=$((64 << 10)) WINDOW=window=1g c_programs qemu-aarch64 -L "$MUSL_ROOT"
    build signals
    # Where each thread's area of restartable sequences is registered by the library.
    system_begin
    system_file "$MUSL_ROOT/usr/lib/aarch64-linux-musl/libc.so" lib/ld-musl-aarch64.so.1
    system_file "$MUSL_LIBRARIES/libheapwright.so" lib/libheapwright.so
    rows=("cache=percpu,stats=exit|thread_detached" "mode=debug|signals")
    # (Minutes, under an emulator.)
    [ "$SLICE" != all ] || rows+=("cache=percpu|caches_hand_over 3" "cache=auto|caches_hand_over 3 shares")
    for program in caches_hand_over thread_detached signals; do
        build $program
        system_file "$SCRATCH/$program" bin/$program
    done
    for row in "${rows[@]}"; do
        system_row "a system: ${row#*|}, ${row%|*}" "LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=${row%|*}" "/bin/${row#*|}"
    done
    system_run
    status=0
    grep -Eq 'rseq commits +[1-9]' "$SYSTEM_LOG" || status=1
    verdict "a system: sequences are committed" $status
    for library in hardened check; do
        WINDOW=window=4g preloaded "signals: libheapwright-$library.so" "" "$MUSL_LIBRARIES/libheapwright_$library.so" \
            qemu-aarch64 -L "$MUSL_ROOT" "$SCRATCH/signals"
    done
fi

say "unit tests"
TESTED=()
if in_half 0; then TESTED+=(heapwright-substrate heapwright-stacks); fi
if in_half 1; then TESTED+=(heapwright-gc heapwright); fi
for package in "${TESTED[@]}"; do
    PROPTEST_CASES=${PROPTEST_CASES:-16} timeout 1200 cargo test --quiet --locked -p "$package" --lib --target $MUSL
done
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"
