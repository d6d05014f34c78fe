#!/usr/bin/env bash
# musl: the library under the preload on a musl system (a root with musl, the library and a busybox that is built for musl
# from Debian's source, once), in C programs that it is linked into statically, and as the global allocator of static Rust
# programs for x86-64 and aarch64 (under qemu-user); threads that end, forks, signals, small stacks, and the debug heap's stack
# traces. What programs print must be the same as with musl's own malloc. HEAPWRIGHT_SLICE takes the unit tests of half
# of the crates, and a sixth of the modes.
#
# ci/musl-figures.sh measures.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/musl-common.sh

packages musl musl-dev musl-tools qemu-user linux-libc-dev bzip2
musl_targets
WORK=$CARGO_TARGET_DIR/musl
mkdir -p "$WORK"

say "compile for $MUSL and aarch64"
musl_library
musl_loads heapwright-debug "$SCRATCH/loads"
musl_loads "" "$SCRATCH/loads-plain"
# Its own linker and start files come with the compiler.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
musl_loads heapwright-debug "$SCRATCH/loads-aarch64" aarch64-unknown-linux-musl

failures=0
# same NAME WANTED COMMAND...: the command ends well and prints what is wanted, and nothing on stderr.
same() {
    local name=$1 wanted=$2 code=0
    shift 2
    timeout 120 "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || code=$?
    if [ $code -eq 0 ] && [ "$(cat "$SCRATCH/out")" = "$wanted" ] && [ ! -s "$SCRATCH/err" ]; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %s (status %d)\n' "$name" $code
        tail -n 5 "$SCRATCH/out" "$SCRATCH/err" | sed 's/^/     /'
        failures=$((failures + 1))
    fi
}

say "static Rust programs"
# sum COMMAND...: what a load has computed, the last number that it prints.
sum() { "$@" | awk '{ print $4 }'; }
export -f sum
for load in tree words vectors handover buffers growing ends; do
    wanted=$(sum "$SCRATCH/loads-plain" $load 1)
    for options in mode=fast mode=debug cache=shared:2; do
        same "x86-64: $load, $options" "$wanted" env HEAPWRIGHT=$options bash -c 'sum "$@"' - "$SCRATCH/loads" $load 1
    done
    # The window is small for qemu: see ci/aarch64.sh.
    [[ $load =~ ^(buffers|growing)$ ]] ||
        same "aarch64: $load" "$wanted" env HEAPWRIGHT=window=4g bash -c 'sum "$@"' - qemu-aarch64 "$SCRATCH/loads-aarch64" $load 1
done
same "aarch64: ends, mode=debug" "$(sum "$SCRATCH/loads-plain" ends 1)" \
    env HEAPWRIGHT=window=4g,mode=debug bash -c 'sum "$@"' - qemu-aarch64 "$SCRATCH/loads-aarch64" ends 1

say "C programs: preloaded, static, static-pie"
# Of the tests' programs those that musl's headers and its own malloc are enough for.
PROGRAMS=(alignment_sweep calloc_zero free_errno malloc_basic signals thread_handover thread_keys thread_storm
    cancelled_threads atfork_handlers fork_from_threads fork_memory fork_storm)
LOADER=$(echo /lib/ld-musl-x86_64.so.1)
# build NAME FLAGS... : a program of the tests.
build() {
    local name=$1
    shift
    musl-gcc -std=gnu11 -O1 -g -w -pthread -fno-builtin -Iinclude -idirafter /usr/include \
        -idirafter "/usr/include/$(uname -m)-linux-gnu" -o "$SCRATCH/$name" "crates/heapwright-malloc/tests/programs/${name%%+*}.c" "$@"
}
number=0
for program in "${PROGRAMS[@]}"; do
    build "$program"
    build "$program+static" -static "$MUSL_A"
    build "$program+pie" -static-pie -fPIE "$MUSL_A"
    same "$program: musl's own malloc" "" "$SCRATCH/$program"
    same "$program: static" "" "$SCRATCH/$program+static"
    same "$program: static-pie" "" "$SCRATCH/$program+pie"
    for options in mode=fast mode=debug mode=hardened cache=percpu; do
        number=$((number + 1))
        [ $options = mode=fast ] || in_slice $number || continue
        same "$program: preloaded, $options" "" env HEAPWRIGHT=$options "$LOADER" --preload "$MUSL_SO" "$SCRATCH/$program"
    done
done

say "a root with musl, the library and busybox"
musl_busybox
root=$SCRATCH/root
mkdir -p "$root/lib" "$root/bin" "$root/proc" "$root/tmp"
cp -L "$LOADER" "$root/lib/"
cp "$MUSL_BUSYBOX" "$root/bin/busybox"
cp "$MUSL_SO" "$root/lib/libheapwright.so"
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
    same "busybox: preloaded, $options" "$wanted" "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=$options sh /bin/work
done
# It must be the library that answers, or the rows prove nothing.
"${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=stats=exit seq 3 2>"$SCRATCH/err" >/dev/null
[ "$(grep -c 'live blocks' "$SCRATCH/err")" -eq 1 ] || { say "FAIL the preload did not take effect"; failures=$((failures + 1)); }

say "stack traces"
cat >"$SCRATCH/twice.c" <<'C'
#include <pthread.h>
#include <stdlib.h>
static char *volatile kept;
__attribute__((noinline)) char *make_it(void) { return malloc(40); }
__attribute__((noinline)) void end_it(char *block) { free(block); }
static void *work(void *nothing) { kept = make_it(); end_it(kept); end_it(kept); return nothing; }
int main(void) { pthread_t thread; pthread_create(&thread, NULL, work, NULL); pthread_join(thread, NULL); return 0; }
C
musl-gcc -Wl,--eh-frame-hdr -O1 -w -g -fomit-frame-pointer -fno-optimize-sibling-calls -o "$SCRATCH/twice" "$SCRATCH/twice.c"
musl-gcc -Wl,--eh-frame-hdr -O1 -w -g -fomit-frame-pointer -fno-optimize-sibling-calls -static -o "$SCRATCH/twice-static" "$SCRATCH/twice.c" "$MUSL_A"
# (Debian's musl-gcc does not ask the linker for the table that unwinders search; compilers of musl systems do.)
# traces NAME PROGRAM COMMAND...: a double free is reported, and its traces have a call in each function of the program, which has no frame
# pointers.
traces() {
    local name=$1 program=$2 function status=0
    shift 2
    HEAPWRIGHT=mode=debug "$@" >"$SCRATCH/out" 2>&1 </dev/null || true
    # shellcheck disable=SC2046 # addresses are words
    addr2line -f -e "$program" $(sed -nE "s|.*\($program\+(0x[0-9a-f]+)\).*|\1|p" "$SCRATCH/out") </dev/null >"$SCRATCH/names"
    for function in make_it end_it work; do grep -qx $function "$SCRATCH/names" || status=1; done
    if [ $status -eq 0 ] && grep -q 'double-free' "$SCRATCH/out"; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %s\n' "$name"
        sed 's/^/     /' "$SCRATCH/out"
        failures=$((failures + 1))
    fi
}
traces "preloaded" "$SCRATCH/twice" "$LOADER" --preload "$MUSL_SO" "$SCRATCH/twice"
traces "static" "$SCRATCH/twice-static" "$SCRATCH/twice-static"

say "unit tests"
# .ci/run comes here with two slices of six, three apart.
TESTED=(heapwright-substrate heapwright-stacks heapwright-gc heapwright)
[ "$SLICE" = all ] || TESTED=("${TESTED[@]:SLICE / 3 * 2:2}")
for package in "${TESTED[@]}"; do
    PROPTEST_CASES=${PROPTEST_CASES:-16} timeout 1200 cargo test --quiet --locked -p "$package" --lib --target $MUSL
done
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"
