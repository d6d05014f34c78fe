# What ci/musl.sh and ci/musl-figures.sh share; sourced after common.sh: the targets, the library for musl, the loads of
# bench/musl, a busybox.

MUSL=x86_64-unknown-linux-musl
export CC_x86_64_unknown_linux_musl=musl-gcc

musl_targets() {
    local target
    for target in $MUSL aarch64-unknown-linux-musl; do
        # (No `grep -q` behind a pipe: see ci/aarch64.sh.)
        [[ $(rustup target list --installed) == *$target* ]] || rustup target add $target
    done
}

# The shared library and the archive. The compiler's own start files are for static programs: musl-gcc knows the others. In a folder of
# its own, because the flags are others.
musl_library() {
    as_shipped env RUSTFLAGS="-C target-feature=-crt-static" CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=musl-gcc \
        cargo build --quiet --locked --release -p heapwright-malloc --target $MUSL --target-dir "$CARGO_TARGET_DIR/musl-shared"
    MUSL_SO=$CARGO_TARGET_DIR/musl-shared/$MUSL/release/libheapwright.so
    MUSL_A=${MUSL_SO%.so}.a
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
