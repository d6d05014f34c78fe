#!/usr/bin/env bash
# Tests musl on x86-64 and aarch64 (qemu). The tests' programs run with the library preloaded, and linked (static-pie).
# On x86-64 the libraries also run in a root with musl and a busybox from Debian's source, the command checks a program
# for musl, and unit tests run. Static Rust programs have the library as their global allocator. Programs must print the
# same as with musl's own malloc.
#
#   ci/musl.sh                    all of this
#   ci/musl.sh figures [ROUNDS]   heapwright beside musl's own malloc (mallocng), mimalloc and jemalloc in static Rust
#                                 programs, on the loads of bench/musl: 9 rounds in turns, half a minute each. The table
#                                 has medians of CPU time and peak memory: mallocng's, and for the others the ratios to
#                                 mallocng in the same round. docs/platforms.md has the targets
#   ci/musl.sh apk                the .apk of packaging/package.sh in a root with only musl: each part's checksum, and
#                                 permissions as octal numbers. In the root the command runs and checks a program, the
#                                 libraries preload by their names, and a program is linked with the archive. After its
#                                 removal the root is as before. apk-tools installs and removes the package if there is
#                                 a program (APK, default: on PATH). Debian has none, so otherwise tar does
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup musl

MUSL=x86_64-unknown-linux-musl
MUSL_AARCH64=aarch64-unknown-linux-musl
export CC_x86_64_unknown_linux_musl=musl-gcc
WORK=$CARGO_TARGET_DIR/musl
mkdir -p "$WORK"

musl_targets() {
    local target installed
    installed=$(rustup target list --installed)
    for target in $MUSL $MUSL_AARCH64; do [[ $installed == *$target* ]] || rustup target add $target; done
}

# musl_compiler FILE COMMAND FOLDER...: writes a compiler of C programs for musl, which requests the table for unwinders.
# The folders have the kernel's headers, which musl lacks.
musl_compiler() {
    printf '#!/bin/sh\nexec %s "$@" -Wl,--eh-frame-hdr%s\n' "$2" "$(printf ' -idirafter %s' "${@:3}")" >"$1"
    chmod +x "$1"
}
KERNELS=(/usr/include "/usr/include/$(uname -m)-linux-gnu")

# musl_libraries TARGET LINKER PACKAGE...: builds the shared libraries and the archive as they are shipped, in
# MUSL_LIBRARIES. The compiler's own start files are for static programs; the linker knows the others.
musl_libraries() {
    local name
    name=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$1")_LINKER
    as_shipped env RUSTFLAGS="-C target-feature=-crt-static" "$name=$2" \
        cargo build --quiet --locked --release "${@:3}" --target "$1" --target-dir "$CARGO_TARGET_DIR/musl-shared"
    MUSL_LIBRARIES=$CARGO_TARGET_DIR/musl-shared/$1/release
}
LIBRARIES=(-p heapwright-malloc -p heapwright-hardened -p heapwright-check)

fetch_musl() { # FOLDER: musl's files for aarch64, from Debian's packages. The compiler looks below usr
    local package
    cd "$1"
    apt_at "$1" deb '' arm64
    apt-get "${APT[@]}" download musl musl-dev
    for package in ./*.deb; do dpkg-deb -x "$package" root; done
    cp -a root/lib/. root/usr/lib/
    rm -rf root/lib lists archives ./*.deb
    ln -s usr/lib root/lib
    sed "s#/usr/#$1/root/usr/#g" root/usr/lib/aarch64-linux-musl/musl-gcc.specs >specs
}

make_busybox() { # FOLDER: a busybox that loads musl, from Debian's source
    local option source=$WORK/sources/busybox
    make -s -C "$source" allnoconfig
    for option in SH_IS_ASH ASH ASH_ECHO ASH_PRINTF ASH_TEST FEATURE_SH_MATH AWK SED GREP SORT FIND FEATURE_FIND_PRUNE \
        FEATURE_FIND_PATH FEATURE_FIND_PAREN TAR FEATURE_TAR_CREATE GZIP GUNZIP SHA256SUM SEQ WC ENV TR LFS; do
        sed -i "s/^# CONFIG_$option is not set/CONFIG_$option=y/" "$source/.config"
    done
    yes '' | make -s -C "$source" oldconfig || true
    make -s -j2 -C "$source" HOSTCC=gcc busybox_unstripped CC="musl-gcc $(printf ' -idirafter %s' "${KERNELS[@]}")"
    cp "$source/busybox_unstripped" "$1/busybox"
}

# musl_loads FEATURE FILE [TARGET]: builds the loads of bench/musl on the allocator of that feature (none: musl's).
musl_loads() {
    local target=${3:-$MUSL}
    cargo build --quiet --locked --release --manifest-path bench/Cargo.toml -p musl-loads ${1:+--features "$1"} \
        --target "$target" --target-dir "$CARGO_TARGET_DIR/bench"
    cp "$CARGO_TARGET_DIR/bench/$target/release/musl-loads" "$2"
}

figures() {
    local round load peer peers=(mallocng heapwright mimalloc jemalloc) loads=(tree words vectors handover boxes buffers growing)
    musl_targets
    musl_loads "" "$SCRATCH/mallocng"
    for peer in "${peers[@]:1}"; do musl_loads "$peer" "$SCRATCH/$peer"; done
    for ((round = 0; round < ${1:-9}; round++)); do
        for load in "${loads[@]}"; do
            for peer in "${peers[@]}"; do echo "$load $peer $("$SCRATCH/$peer" "$load" 5)"; done
        done
    done >"$SCRATCH/runs"
    [ "$(awk '{ print $1, $6 }' "$SCRATCH/runs" | sort -u | wc -l)" -eq ${#loads[@]} ] || die "the allocators' programs compute different sums"
    # of LOAD PEER COLUMN: the median of a column (3: CPU time, 5: peak memory); for peers, of ratios to mallocng's.
    of() {
        awk -v load="$1" -v peer="$2" -v c="$3" '$1 == load && $2 == "mallocng" { base = $c }
            $1 == load && $2 == peer { print peer == "mallocng" ? $c : $c / (base ? base : 1) }' "$SCRATCH/runs" | median
    }
    printf '%-10s %10s %11s' load 'CPU ms' 'peak KiB'
    printf '  %-15s' "${peers[@]:1}"
    for load in "${loads[@]}"; do
        printf '\n%-10s %10s %11s' "$load" "$(of "$load" mallocng 3)" "$(of "$load" mallocng 5)"
        for peer in "${peers[@]:1}"; do printf '  %.2f, %.2f     ' "$(of "$load" "$peer" 3)" "$(of "$load" "$peer" 5)"; done
    done
    printf '\n'
}

apk_package() {
    local package file root name COMPILER
    [ "$(uname -m)" = x86_64 ] || die "this is for x86-64"
    musl_targets
    APK=${APK:-$(type -P apk || true)}

    # packaging/package.sh packs these builds (HEAPWRIGHT_BUILT). The command is a debug build: speed is not tested.
    musl_libraries $MUSL musl-gcc "${LIBRARIES[@]}"
    RUSTFLAGS="-C link-self-contained=no" cargo build --quiet --release --locked -p heapwright-launcher --target $MUSL \
        --target-dir "$CARGO_TARGET_DIR/musl-shared"
    export HEAPWRIGHT_BUILT=$SCRATCH/built
    HEAPWRIGHT_EMBED_LIBRARY=$MUSL_LIBRARIES/libheapwright.so HEAPWRIGHT_EMBED_CHECK_LIBRARY=$MUSL_LIBRARIES/libheapwright_check.so \
        HEAPWRIGHT_EMBED_LAUNCHER=$MUSL_LIBRARIES/heapwright-launcher \
        CARGO_PROFILE_DEV_DEBUG=0 cargo build --quiet --locked -p heapwright-cli --target $MUSL --target-dir "$CARGO_TARGET_DIR/musl-shared"
    mkdir "$HEAPWRIGHT_BUILT"
    cp "$MUSL_LIBRARIES"/libheapwright{.so,.a,_hardened.so,_check.so} "$CARGO_TARGET_DIR/musl-shared/$MUSL/debug"/{heapwright,cargo-heapwright} \
        "$HEAPWRIGHT_BUILT/"
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} CARGO_BUILD_TARGET=$MUSL
    packaging/package.sh "$SCRATCH/out" apk >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "the package is not made"; }
    (umask 077 && TZ=Asia/Tokyo packaging/package.sh "$SCRATCH/again" apk >/dev/null 2>&1)
    package=$(echo "$SCRATCH"/out/heapwright[-_][0-9]*.apk)
    for file in "$SCRATCH"/out/*.apk; do
        cmp "$file" "$SCRATCH/again/${file##*/}" || die "a second package differs"
    done
    say "ok   made twice, the package is equal"

    python3 - "$package" <<'PYTHON' || die "the package is not well made"
import hashlib, io, sys, tarfile, zlib

rest, parts = open(sys.argv[1], "rb").read(), []
while rest:
    reader = zlib.decompressobj(31)
    text = reader.decompress(rest)
    parts.append((rest[: len(rest) - len(reader.unused_data)], text))
    rest = reader.unused_data
description, files = parts
for _, text in parts:
    archive = tarfile.open(fileobj=io.BytesIO(text + bytes(1024)))
    for entry in archive:
        header = text[entry.offset_data - 512 : entry.offset_data]
        mode = header[100:107]
        assert mode.isdigit(), f"{entry.name}: permissions {mode!r}"
        if entry.isreg() and text is files[1]:
            sum = hashlib.sha1(archive.extractfile(entry).read()).hexdigest()
            assert entry.pax_headers["APK-TOOLS.checksum.SHA1"] == sum, entry.name
words = dict(line.split(" = ", 1) for line in description[1][512:].decode().rstrip("\0").splitlines() if " = " in line)
assert words["datahash"] == hashlib.sha256(files[0]).hexdigest(), "datahash"
assert words["depend"] == "musl", words["depend"]
PYTHON
    say "ok   checksums and permissions"

    root=$SCRATCH/root
    mkdir -p "$root"/{bin,lib,proc,tmp,etc/apk,var/cache}
    cp -L /lib/ld-musl-x86_64.so.1 "$root/lib/"
    cp "$(type -P busybox)" "$root/bin/busybox"
    for name in sh ls grep cat env; do ln -s busybox "$root/bin/$name"; done
    cat >"$SCRATCH/program.c" <<'C'
#include <stdlib.h>
static char *volatile kept;
__attribute__((noinline)) static void lose_it(void) { kept = malloc(100); kept = NULL; }
__attribute__((noinline)) static void end_it(char *block) { free(block); }
int main(int count, char **words)
{
    char *block = malloc(50);
    /* One of them may still be in a register. */
    for (int i = 0; i < 20; i++)
        lose_it();
    end_it(block);
    if (count > 1)
        end_it(block);
    return words == NULL;
}
C
    COMPILER=$SCRATCH/musl-cc
    musl_compiler "$COMPILER" musl-gcc "${KERNELS[@]}"
    "$COMPILER" -g -O1 -fno-builtin -fno-optimize-sibling-calls -o "$root/bin/program" "$SCRATCH/program.c"
    files() { (cd "$root" && find . ! -type d ! -path './tmp/*' ! -path './lib/apk/*' ! -path './etc/apk/*' ! -path './var/cache/*' -printf '%y %m %s %p %l\n' | sort); }
    inside() { # with the root's own /proc, in a name space that ends with the command
        # shellcheck disable=SC2016 # for the other shell
        unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
            /bin/env -i PATH=/usr/bin:/bin HOME=/tmp "$@"
    }
    apk() { "$APK" --root "$root" --arch x86_64 --allow-untrusted --no-network --repositories-file /dev/null "$@"; }

    # The root's musl, as a package.
    [ -z "$APK" ] || apk add --initdb --virtual musl >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "apk-tools makes no root"; }
    files >"$SCRATCH/before"
    if [ -n "$APK" ]; then
        apk add "$package" >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "apk-tools does not install it"; }
        [ -z "$(apk audit --packages)" ] || die "apk-tools finds changes"
    else
        tar -xzf "$package" --warning=no-unknown-keyword --ignore-zeros --exclude=.PKGINFO -C "$root"
    fi
    # says NAME TEXT... -- COMMAND...: the command's output in the root contains each of the texts.
    says() {
        local name=$1 texts=()
        shift
        while [ "$1" != -- ]; do texts+=("$1"); shift; done
        inside "${@:2}" >"$SCRATCH/said" 2>&1 || true
        for text in "${texts[@]}"; do grep -qF -- "$text" "$SCRATCH/said" || { cat "$SCRATCH/said"; die "$name: it does not say '$text'"; }; done
    }
    says "run" "exit code 0" allocations rounding -- heapwright run --stats -- program
    says "check" "double-free" "in end_it" "in main" "definitely lost" "in lose_it" -- heapwright check -- program twice
    says "doctor" "heapwright takes effect on program" -- heapwright doctor program
    says "preload" "heapwright: " -- env LD_PRELOAD=libheapwright.so HEAPWRIGHT=stats=exit program
    says "preload, hardened" "was freed before" -- env LD_PRELOAD=libheapwright-hardened.so program twice
    says "preload, check" "double-free" -- env LD_PRELOAD=libheapwright-check.so program twice
    printf '#include <heapwright.h>\n#include <stdlib.h>\nint main(void) { return !hw_owns(malloc(10)); }\n' >"$SCRATCH/owns.c"
    "$COMPILER" -static -I"$root/usr/include" -o "$SCRATCH/owns" "$SCRATCH/owns.c" "$root/usr/lib/libheapwright.a"
    "$SCRATCH/owns" || die "a static program is not on heapwright"
    if [ -n "$APK" ]; then
        apk del heapwright >/dev/null
    else
        tar -tzf "$package" --warning=no-unknown-keyword --ignore-zeros | grep -v '/$' | (cd "$root" && xargs rm -f)
    fi
    files | diff "$SCRATCH/before" - || die "the package's removal leaves a changed root"
    say "ok   .apk: installed in a root of musl's${APK:+ by apk-tools}, used, removed without a trace"
}

case ${1:-} in
    figures) figures "${@:2}"; exit ;;
    apk) apk_package; exit ;;
    '') ;;
    *) die "usage: ci/musl.sh [figures [ROUNDS] | apk]" ;;
esac

musl_targets
failures=0
# verdict NAME STATUS [FILE...]: prints one row, and the ends of the files if it failed.
verdict() {
    if [ "$2" -eq 0 ]; then say "ok   $1"; return; fi
    say "FAIL $1"
    tail -qn 5 "${@:3}" </dev/null | sed 's/^/     /'
    failures=$((failures + 1))
}
# same NAME WANTED COMMAND...: the command ends well, prints the wanted text, and nothing on stderr.
same() {
    local code=0
    timeout 120 "${@:3}" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || code=$?
    [ $code -ne 0 ] || { [ "$(cat "$SCRATCH/out")" = "$2" ] && [ ! -s "$SCRATCH/err" ]; } || code=1
    verdict "$1" $code "$SCRATCH/out" "$SCRATCH/err"
}
# says NAME WANTED... -- COMMAND... : the output contains each of the texts.
says() {
    local name=$1 status=0 texts=()
    shift
    while [ "$1" != -- ]; do texts+=("$1"); shift; done
    timeout 120 "${@:2}" >"$SCRATCH/out" 2>&1 </dev/null || true
    for text in "${texts[@]}"; do grep -qF -- "$text" "$SCRATCH/out" || { echo "no '$text'" >>"$SCRATCH/out"; status=1; }; done
    verdict "$name" $status "$SCRATCH/out"
}
# suite NAME WORDS...: runs tests of this system. $CC compiles their programs, which get the libraries of $MUSL_LIBRARIES.
suite() {
    local status=0
    HEAPWRIGHT_TEST_LIBRARY=$MUSL_LIBRARIES HEAPWRIGHT_HARDENED_SO=$MUSL_LIBRARIES/libheapwright_hardened.so \
        HEAPWRIGHT_CHECK_SO=$MUSL_LIBRARIES/libheapwright_check.so cargo test --quiet --locked "${@:2}" >"$SCRATCH/out" 2>&1 || status=1
    verdict "$1" $status "$SCRATCH/out"
}
# malloc_suites NAME [WINDOW]: runs the tests of malloc that need nothing of glibc.
malloc_suites() {
    local options
    for options in MODE=fast MODE=debug MODE=hardened CACHE=percpu; do
        export "HEAPWRIGHT_TEST_$options${2:+,$2}"
        suite "$1: $options" -p heapwright-malloc --test api --test threads --test fork --test lifetime -- alignments malloc_gives calloc_gives \
            free_keeps short_threads blocks_freed destructors_of_keys threads_that threads_may children_of a_child fork_handlers signal_handlers
        unset "HEAPWRIGHT_TEST_${options%%=*}"
    done
}
# static_pie NAME RUN...: links as gcc's -static-pie does, which compilers for musl do not pass to the linker.
static_pie() {
    "$CC" -std=gnu11 -O1 -g -w -pthread -fno-builtin -nostartfiles -fPIE -Wl,-static,-pie,--no-dynamic-linker,-z,text -o "$SCRATCH/pie" \
        "$MUSL_START"/{rcrt1,crti}.o crates/heapwright-malloc/tests/programs/thread_storm.c "$MUSL_LIBRARIES/libheapwright.a" "$MUSL_START/crtn.o"
    same "$1" "" "${@:2}" "$SCRATCH/pie"
}

x86_64() {
    local options library status wanted root name
    say "compile for $MUSL"
    musl_libraries $MUSL musl-gcc "${LIBRARIES[@]}"
    export CC=$WORK/musl-cc
    MUSL_START=/usr/lib/x86_64-linux-musl
    musl_compiler "$CC" musl-gcc "${KERNELS[@]}"

    say "the tests of the libraries"
    malloc_suites "x86-64"
    static_pie "static-pie" env HEAPWRIGHT=mode=debug
    # Tests of glibc's own features, and of C++, which has no compiler here, are left out.
    suite "caches that are handed over" -p heapwright-malloc --test caches -- threads_that_hand_blocks_over
    suite "kernels that lack calls" -p heapwright-malloc --test limits -- --ignored kernels
    suite "libheapwright-hardened.so" -p heapwright-hardened --test bounds -- --skip the_names_are_those_that_are_tested \
        --skip it_needs_the_c_library_alone --skip installed --skip set_uid --skip a_thread_that_began_before_the_library
    # (musl itself reads the lists at invalid addresses, and ends.)
    suite "libheapwright-check.so" -p heapwright-check --test reads -- --skip containers_that_are_annotated --skip the_kernel_refuses_what_it_refused

    say "a root with musl, the library and busybox"
    SOURCES=$WORK/sources
    if [ ! -e "$WORK/busybox/done" ]; then source_package busybox || die "no busybox for musl"; fi
    fetched "$WORK/busybox" make_busybox "$WORK/busybox" || die "no busybox for musl"
    root=$SCRATCH/root
    mkdir -p "$root/lib" "$root/bin" "$root/proc" "$root/tmp"
    cp -L /lib/ld-musl-x86_64.so.1 "$root/lib/"
    cp "$WORK/busybox/busybox" "$root/bin/busybox"
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
    # The host's own programs must not see these variables.
    IN_ROOT=(env -i "$(command -v chroot)" "$root" /bin/env PATH=/bin)
    wanted=$("${IN_ROOT[@]}" sh /bin/work)
    for options in mode=fast mode=debug mode=hardened cache=percpu cache=shared:2; do
        same "busybox: preloaded, $options" "$wanted" "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=$options sh /bin/work
    done
    for library in hardened check; do
        same "busybox: libheapwright-$library.so" "$wanted" "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright_$library.so sh /bin/work
    done
    says "the preload takes effect" "live blocks" -- "${IN_ROOT[@]}" LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=stats=exit seq 3

    say "the command, with a program for musl; stack traces"
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
    "$CC" "${TRACED[@]}" -o "$SCRATCH/twice" "$SCRATCH/twice.c"
    "$CC" "${TRACED[@]}" -static -o "$SCRATCH/twice-static" "$SCRATCH/twice.c" "$MUSL_LIBRARIES/libheapwright.a"
    HEAPWRIGHT=mode=debug "$SCRATCH/twice-static" >"$SCRATCH/said" 2>&1 </dev/null || true
    # shellcheck disable=SC2046 # addresses are words
    says "stack traces of a static program" make_it end_it work -- \
        addr2line -f -e "$SCRATCH/twice-static" $(sed -nE "s|.*\+(0x[0-9a-f]+)\).*|\1|p" "$SCRATCH/said")
    cargo build --quiet --locked -p heapwright-cli
    COMMAND=$CARGO_TARGET_DIR/debug/heapwright
    export HEAPWRIGHT_LIBRARY=$MUSL_LIBRARIES/libheapwright.so
    says "doctor" "heapwright takes effect" -- "$COMMAND" doctor "$SCRATCH/twice"
    says "run" "peak" -- "$COMMAND" run --stats -- "$SCRATCH/twice"
    says "run --hardened" "was freed before" -- "$COMMAND" run --hardened -- "$SCRATCH/twice"
    HEAPWRIGHT_LIBRARY=$MUSL_LIBRARIES/libheapwright_check.so
    says "check" "double-free" "in make_it" "in end_it" "in work" "twice.c:" "by strcpy of 54 bytes" "in fill_it" \
        "100 bytes in 1 block" "in lose_it" -- "$COMMAND" check -- "$SCRATCH/twice" "a text that is longer than the block that it goes to."
    unset HEAPWRIGHT_LIBRARY CC
    says "doctor, with the library for glibc" "it uses the musl C library" -- "$COMMAND" doctor "$SCRATCH/twice"
}

aarch64() {
    local load options wanted row library program rows qemu
    say "static Rust programs"
    musl_loads heapwright-debug "$SCRATCH/loads"
    musl_loads "" "$SCRATCH/loads-plain"
    # The target's own linker and start files come with the compiler.
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
    same "aarch64: ends, mode=debug" "$wanted" env HEAPWRIGHT=window=4g,mode=debug bash -c 'sum "$@"' - qemu-aarch64 "$SCRATCH/loads-aarch64" ends 1

    say "aarch64: C programs, preloaded, static, static-pie"
    fetched "$WORK/aarch64" fetch_musl "$WORK/aarch64" || die "cannot fetch musl for aarch64"
    root=$WORK/aarch64/root
    export CC=$WORK/aarch64-musl-gcc
    # (gcc's functions for atomics ask for one of glibc's.)
    musl_compiler "$CC" "aarch64-linux-gnu-gcc -mno-outline-atomics -specs=$WORK/aarch64/specs" /usr/aarch64-linux-gnu/include
    CC_aarch64_unknown_linux_musl=$CC musl_libraries $MUSL_AARCH64 "$CC" "${LIBRARIES[@]}"
    MUSL_START=$root/usr/lib/aarch64-linux-musl
    qemu="qemu-aarch64 -L $root"
    EMULATOR_KIB=$((64 << 10)) HEAPWRIGHT_TEST_RUNNER=$qemu malloc_suites aarch64 window=1g
    # shellcheck disable=SC2086 # words
    static_pie "aarch64: static-pie" env HEAPWRIGHT=window=1g EMULATOR_KIB=$((64 << 10)) $qemu
    for program in caches_hand_over thread_detached signals; do
        "$CC" -std=gnu11 -O1 -g -w -pthread -fno-builtin -Iinclude -o "$SCRATCH/$program" crates/heapwright-malloc/tests/programs/$program.c
    done
    for library in hardened check; do
        # shellcheck disable=SC2086 # words
        same "signals: libheapwright-$library.so" "" env HEAPWRIGHT=window=4g $qemu -E LD_PRELOAD="$MUSL_LIBRARIES/libheapwright_$library.so" "$SCRATCH/signals"
    done
    # Here the library registers each thread's area of restartable sequences.
    system_begin
    system_file "$root/usr/lib/aarch64-linux-musl/libc.so" lib/ld-musl-aarch64.so.1
    system_file "$MUSL_LIBRARIES/libheapwright.so" lib/libheapwright.so
    rows=("cache=percpu,stats=exit|thread_detached" "mode=debug|signals" "cache=percpu|caches_hand_over 3" "cache=auto|caches_hand_over 3 shares")
    for program in caches_hand_over thread_detached signals; do system_file "$SCRATCH/$program" bin/$program; done
    for row in "${rows[@]}"; do
        system_row "a system: ${row#*|}, ${row%|*}" "LD_PRELOAD=/lib/libheapwright.so HEAPWRIGHT=${row%|*}" "/bin/${row#*|}"
    done
    system_run
    says "a system: sequences are committed" "" -- grep -E 'rseq commits +[1-9]' "$SYSTEM_LOG"
    [ -s "$SCRATCH/out" ] || failures=$((failures + 1))
}

x86_64
aarch64
say "unit tests"
unset CC
for package in heapwright-substrate heapwright-stacks heapwright-gc heapwright-realm heapwright; do
    PROPTEST_CASES=${PROPTEST_CASES:-16} timeout 1200 cargo test --quiet --locked -p "$package" --lib --target $MUSL
done
[ $failures -eq 0 ] || die "$failures rows failed"
say "all rows hold"
