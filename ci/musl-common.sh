# What ci/musl.sh and ci/musl-figures.sh share; sourced after common.sh: the targets, compilers, the libraries for musl, the
# loads of bench/musl, a busybox.

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
    rm -rf "$at"
    mkdir -p "$at/lists/partial" "$at/archives/partial"
    # The list of sources and all of apt's state for it are ours: the system's stay as they are.
    (. /etc/os-release; echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main") >"$at/sources.list"
    local options=(-qq -o Dir::Etc::sourcelist="$at/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$at/lists" -o Dir::Cache="$at" -o APT::Sandbox::User=root)
    say "building busybox"
    {
        apt-get "${options[@]}" update
        (cd "$at" && apt-get "${options[@]}" source --download-only busybox && dpkg-source --no-check -x ./*.dsc source)
        make -s -C "$at/source" allnoconfig
        for option in SH_IS_ASH ASH ASH_ECHO ASH_PRINTF ASH_TEST FEATURE_SH_MATH AWK SED GREP SORT FIND FEATURE_FIND_PRUNE \
            FEATURE_FIND_PATH FEATURE_FIND_PAREN TAR FEATURE_TAR_CREATE GZIP GUNZIP SHA256SUM SEQ WC ENV TR LFS; do
            sed -i "s/^# CONFIG_$option is not set/CONFIG_$option=y/" "$at/source/.config"
        done
        yes '' | make -s -C "$at/source" oldconfig || true
        make -s -j2 -C "$at/source" HOSTCC=gcc busybox_unstripped \
            CC="musl-gcc -idirafter /usr/include -idirafter /usr/include/$(uname -m)-linux-gnu"
        cp "$at/source/busybox_unstripped" "$at/built"
        rm -rf "$at/source" "$at/lists" "$at"/*.tar.* "$at"/*.dsc
        mv "$at/built" "$MUSL_BUSYBOX"
    } >"$SCRATCH/busybox" 2>&1 </dev/null || { tail -20 "$SCRATCH/busybox" >&2; die "no busybox for musl"; }
}
