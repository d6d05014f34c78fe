#!/usr/bin/env bash
# musl: the library under the preload on a musl system (a root with musl, the library and a busybox that is built for musl
# from Debian's source, once), in C programs that it is linked into statically, and as the global allocator of static Rust
# programs, for x86-64 and aarch64 (under qemu-user); the libraries with bounds, and the command, with programs for musl; threads
# that end, forks, signals, small stacks, and stack traces. What programs print must be the same as with musl's own malloc.
# HEAPWRIGHT_SLICE 0 to 2 takes x86-64's libraries, 3 to 5 static Rust programs and aarch64; both the unit tests of half of the crates.
#
#   ci/musl.sh                    all of this
#   ci/musl.sh figures [ROUNDS]   heapwright beside musl's own malloc (mallocng), mimalloc and
#                                 jemalloc in static Rust programs, on the loads of bench/musl: 9
#                                 rounds in turns, half a minute each. A ratio is of two runs of one
#                                 round. The table has the medians over the rounds, of the
#                                 processes' CPU time. The targets: a third of mallocng's time on
#                                 the loads that allocate much, and at most 1.5 of its peak memory
#                                 on those that hold large buffers. docs/platforms.md says which
#                                 figures an allocator can reach
#   ci/musl.sh apk                the .apk of packaging/package.sh in a root with only musl. Verifies what
#                                 apk-tools demands: each part's checksum (of the files, and each
#                                 file's own), and permissions as octal numbers. In the root the
#                                 command runs and checks a program, the libraries preload by their
#                                 names, and a program is linked with the archive. After its removal
#                                 the root is as before. Debian has no package of apk-tools: if
#                                 there is a program (APK, default: on PATH), it installs and
#                                 removes, else tar does
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MUSL=x86_64-unknown-linux-musl
MUSL_AARCH64=aarch64-unknown-linux-musl
export CC_x86_64_unknown_linux_musl=musl-gcc

musl_targets() {
    local target
    for target in $MUSL $MUSL_AARCH64; do
        # (No `grep -q` behind a pipe: see ci/aarch64.sh.)
        [[ $(rustup target list --installed) == *$target* ]] || rustup target add $target
    done
}

# musl_compiler FILE COMMAND FOLDER...: a compiler of C programs for musl, as a file. What musl has no headers for (the kernel's)
# is looked for in the folders; the table that unwinders search is asked for, as compilers of musl systems do.
musl_compiler() {
    local file=$1 command=$2
    shift 2
    printf '#!/bin/sh\nexec %s "$@" -Wl,--eh-frame-hdr%s\n' "$command" "$(printf ' -idirafter %s' "$@")" >"$file"
    chmod +x "$file"
}

# musl_libraries TARGET LINKER PACKAGE... : the shared libraries and the archive, in MUSL_LIBRARIES. The compiler's own start files
# are for static programs: the linker knows the others. In a folder of its own, because the flags are others. As they are shipped,
# if all is run; in a slice as .ci/run builds tools, in a third of the time.
musl_libraries() {
    local target=$1 linker=$2 as=() words=() package name
    shift 2
    [ "$SLICE" != all ] || as=(as_shipped)
    for package in "$@"; do words+=(-p "$package"); done
    name=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_LINKER
    ${as[@]+"${as[@]}"} env RUSTFLAGS="-C target-feature=-crt-static" "$name=$linker" \
        cargo build --quiet --locked --release "${words[@]}" --target "$target" --target-dir "$CARGO_TARGET_DIR/musl-shared"
    MUSL_LIBRARIES=$CARGO_TARGET_DIR/musl-shared/$target/release
}

# musl_aarch64: musl's files for aarch64, from Debian's packages, which are fetched once: in MUSL_ROOT, with a compiler in
# MUSL_AARCH64_CC.
musl_aarch64() {
    local at=$CARGO_TARGET_DIR/musl/aarch64
    MUSL_ROOT=$at/root
    MUSL_AARCH64_CC=$at/aarch64-musl-gcc
    if [ ! -d "$MUSL_ROOT" ]; then
        rm -rf "$at"
        {
            apt_aside "$at" arm64
            (cd "$at" && apt-get "${APT[@]}" download musl musl-dev)
            for package in "$at"/*.deb; do dpkg-deb -x "$package" "$at/unpacked"; done
            # One folder of libraries, as installed systems have it: the compiler looks below usr.
            cp -a "$at/unpacked/lib/." "$at/unpacked/usr/lib/"
            rm -rf "$at/unpacked/lib" "$at/lists" "$at/archives" "$at"/*.deb
            ln -s usr/lib "$at/unpacked/lib"
            mv "$at/unpacked" "$MUSL_ROOT"
        } >"$SCRATCH/fetch" 2>&1 </dev/null || { tail -n 5 "$SCRATCH/fetch" >&2; die "cannot fetch musl for aarch64"; }
    fi
    sed "s#/usr/#$MUSL_ROOT/usr/#g" "$MUSL_ROOT/usr/lib/aarch64-linux-musl/musl-gcc.specs" >"$at/specs"
    # (gcc's functions for atomics ask for one of glibc's.)
    musl_compiler "$MUSL_AARCH64_CC" "aarch64-linux-gnu-gcc -mno-outline-atomics -specs=$at/specs" /usr/aarch64-linux-gnu/include
}

# musl_loads FEATURE FILE [TARGET]: the loads of bench/musl on the allocator of that feature (none: musl's).
musl_loads() {
    local target=${3:-$MUSL}
    cargo build --quiet --locked --release --manifest-path bench/Cargo.toml -p musl-loads ${1:+--features "$1"} \
        --target "$target" --target-dir "$CARGO_TARGET_DIR/bench"
    cp "$CARGO_TARGET_DIR/bench/$target/release/musl-loads" "$2"
}

# A busybox that loads musl, from Debian's source, which is fetched and built once.
musl_busybox() {
    local at=$CARGO_TARGET_DIR/musl/busybox option
    MUSL_BUSYBOX=$at/busybox
    [ ! -x "$MUSL_BUSYBOX" ] || return 0
    packages dpkg-dev make gcc libc6-dev
    SOURCES=$CARGO_TARGET_DIR/musl/sources
    rm -rf "$at" "$SOURCES/busybox"
    mkdir -p "$at"
    source_package busybox || die "no busybox for musl"
    say "building busybox"
    {
        make -s -C "$SOURCES/busybox" allnoconfig
        for option in SH_IS_ASH ASH ASH_ECHO ASH_PRINTF ASH_TEST FEATURE_SH_MATH AWK SED GREP SORT FIND FEATURE_FIND_PRUNE \
            FEATURE_FIND_PATH FEATURE_FIND_PAREN TAR FEATURE_TAR_CREATE GZIP GUNZIP SHA256SUM SEQ WC ENV TR LFS; do
            sed -i "s/^# CONFIG_$option is not set/CONFIG_$option=y/" "$SOURCES/busybox/.config"
        done
        yes '' | make -s -C "$SOURCES/busybox" oldconfig || true
        make -s -j2 -C "$SOURCES/busybox" HOSTCC=gcc busybox_unstripped \
            CC="musl-gcc -idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
        cp "$SOURCES/busybox/busybox_unstripped" "$at/built"
        rm -rf "$SOURCES/busybox"
        mv "$at/built" "$MUSL_BUSYBOX"
    } >"$SCRATCH/busybox" 2>&1 </dev/null || { tail -20 "$SCRATCH/busybox" >&2; die "no busybox for musl"; }
}

figures() {
    local ROUNDS=${1:-9} PEERS peer feature SMALL LARGE LOADS round load cpu wall peak sum
    packages musl musl-dev musl-tools make
    musl_targets
    PEERS=(mallocng heapwright mimalloc jemalloc)
    for peer in "${PEERS[@]}"; do
        feature=$peer
        [ "$peer" != mallocng ] || feature=
        musl_loads "$feature" "$SCRATCH/$peer"
    done

    SMALL=(tree words vectors handover boxes) # by time
    LARGE=(buffers growing)                   # by memory
    LOADS=("${SMALL[@]}" "${LARGE[@]}")
    for ((round = 0; round < ROUNDS; round++)); do
        for load in "${LOADS[@]}"; do
            for peer in "${PEERS[@]}"; do
                read -r cpu wall peak sum < <("$SCRATCH/$peer" "$load" 5)
                printf '%s %s %d %d %d %d %d\n' "$load" "$peer" $round "$cpu" "$wall" "$peak" "$sum"
            done
        done
    done >"$SCRATCH/runs"
    [ "$(awk '{ print $1, $7 }' "$SCRATCH/runs" | sort -u | wc -l)" -eq ${#LOADS[@]} ] || die "the allocators' programs compute different sums"

    # ratio LOAD PEER COLUMN: the median of what a peer takes to what mallocng takes in the same round.
    ratio() {
        awk -v of="$1" -v peer="$2" -v column="$3" '
            $1 == of && $2 == "mallocng" { base[$3] = $column }
            $1 == of && $2 == peer { mine[$3] = $column }
            END { for (round in mine) printf "%.3f\n", mine[round] / (base[round] ? base[round] : 1) }' "$SCRATCH/runs" | median
    }
    of() { awk -v of="$1" -v peer=mallocng -v column="$2" '$1 == of && $2 == peer { print $column }' "$SCRATCH/runs" | median; }
    printf '%-10s %22s | %s\n%-10s %10s %11s |' "" "mallocng" "ratio to mallocng: CPU time, peak memory" load "CPU ms" "peak KiB"
    for peer in "${PEERS[@]:1}"; do printf '  %-13s' "$peer"; done
    printf '\n'
    for load in "${LOADS[@]}"; do
        printf '%-10s %10s %11s |' "$load" "$(of "$load" 4)" "$(of "$load" 6)"
        for peer in "${PEERS[@]:1}"; do printf '  %.2f  %.2f   ' "$(ratio "$load" "$peer" 4)" "$(ratio "$load" "$peer" 6)"; done
        printf '\n'
    done
    # judge TEXT COLUMN MOST LOAD...: which loads have at most that ratio, and which have not.
    judge() {
        local text=$1 column=$2 most=$3 load ratio met=() missed=()
        shift 3
        for load in "$@"; do
            ratio=$(ratio "$load" heapwright "$column")
            if awk -v ratio="$ratio" -v most="$most" 'BEGIN { exit ratio > most }'; then met+=("$load ($ratio)"); else missed+=("$load ($ratio)"); fi
        done
        say "$text: met by ${met[*]:-none}; missed by ${missed[*]:-none}"
    }
    judge "a third of mallocng's time (0.333)" 4 0.3334 "${SMALL[@]}"
    judge "1.5 of mallocng's peak" 6 1.5 "${LARGE[@]}"
}

apk_package() {
    local package file root name COMPILER
    packages musl musl-dev musl-tools busybox-static linux-libc-dev
    [ "$(uname -m)" = x86_64 ] || die "this is for x86-64"
    musl_targets
    APK=${APK:-$(type -P apk || true)}

    # In a third of the time that what is shipped takes (which is packaging/package.sh's, without HEAPWRIGHT_BUILT), and the command, whose files
    # and not whose speed are looked at, in a sixth.
    musl_libraries $MUSL musl-gcc heapwright-malloc heapwright-hardened heapwright-check
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
    musl_compiler "$COMPILER" musl-gcc /usr/include "/usr/include/$(uname -m)-linux-gnu"
    "$COMPILER" -g -O1 -fno-builtin -fno-optimize-sibling-calls -o "$root/bin/program" "$SCRATCH/program.c"
    files() { (cd "$root" && find . ! -type d ! -path './tmp/*' ! -path './lib/apk/*' ! -path './etc/apk/*' ! -path './var/cache/*' -printf '%y %m %s %p %l\n' | sort); }
    # A root's own /proc, in a name space that ends with the command.
    inside() {
        # shellcheck disable=SC2016 # for the other shell
        unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
            /bin/env -i PATH=/usr/bin:/bin HOME=/tmp "$@"
    }
    apk() { "$APK" --root "$root" --arch x86_64 --allow-untrusted --no-network --repositories-file /dev/null "$@"; }

    if [ -n "$APK" ]; then
        # The root's musl, as a package.
        apk add --initdb --virtual musl >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "apk-tools makes no root"; }
    fi
    files >"$SCRATCH/before"
    if [ -n "$APK" ]; then
        apk add "$package" >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "apk-tools does not install it"; }
        [ -z "$(apk audit --packages)" ] || die "apk-tools finds changes"
    else
        tar -xzf "$package" --warning=no-unknown-keyword --ignore-zeros --exclude=.PKGINFO -C "$root"
    fi
    # says NAME TEXT... -- COMMAND...: what the command prints in the root has each of the texts in it.
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
    files | diff "$SCRATCH/before" - || die "the package's removal leaves the root another one"
    say "ok   .apk: installed in a root of musl's${APK:+ by apk-tools}, used, removed without a trace"
}

case ${1:-} in
    figures) figures "${@:2}"; exit ;;
    apk) apk_package; exit ;;
    '') ;;
    *) die "usage: ci/musl.sh [figures [ROUNDS] | apk]" ;;
esac

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
