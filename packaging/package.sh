#!/usr/bin/env bash
# Makes the packages of a release: of the sources, and for each kind of distribution.
#
#   packaging/package.sh OUT [FORMAT...]       deb rpm archlinux tar source; for musl (CARGO_BUILD_TARGET): apk tar source
#
#   OUT/heapwright-VERSION.tar.xz                       the sources of HEAD
#   OUT/heapwright-VERSION-x86_64-linux-gnu.tar.xz      bin, lib, include, share; to be unpacked anywhere
#   OUT/heapwright_VERSION_amd64.deb and so on
#   OUT/heapwright-VERSION-x86_64-linux-gnu-dbg.tar.xz, heapwright-dbg_VERSION_amd64.deb and so on
#                                                       the libraries' debug information, by build-id
#   OUT/PKGBUILD, heapwright.rb, heapwright.wrap        for Arch, Homebrew and Meson, with the archives' checksums
#   OUT/SHA256SUMS
#
# Nothing depends on the clock, the user or the folder: two builds of one commit are equal (--prove compares them).
#
# Environment:
#   HEAPWRIGHT_BUILT        a folder with heapwright, cargo-heapwright, libheapwright.so, libheapwright.a,
#                           libheapwright_hardened.so and libheapwright_check.so (default: they are built)
#   CARGO_BUILD_TARGET      what to build for (default: this machine)
#   SOURCE_DATE_EPOCH       the time that files are given (default: HEAD's)
#   HEAPWRIGHT_RELEASE_URL  where the archives will be found, for PKGBUILD, heapwright.rb and heapwright.wrap (default: OUT)
#   HEAPWRIGHT_MAINTAINER   "Name <address>", for users of the packages (default: an address that cannot exist)
#   NFPM                    the program (default: on PATH, else it is built from Go's module proxy, which takes a minute)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../ci/common.sh"
umask 022
NFPM_VERSION=v2.45.2

MAINTAINER=${HEAPWRIGHT_MAINTAINER:-The heapwright developers <developers@heapwright.invalid>}
[[ $MAINTAINER =~ ^[^\<\>]+\ \<[^@\ ]+@[^@\ ]+\>$ ]] || die "HEAPWRIGHT_MAINTAINER is '$MAINTAINER'; it is to be like: Name <name@example.org>"

usage() { echo "usage: packaging/package.sh [--prove] OUT [deb|rpm|apk|archlinux|tar|source]..." >&2; exit 2; }
# Not HEAD, which may be another one when the last archive is made.
commit=$(git rev-parse HEAD)
prove=
if [ "${1:-}" = --prove ]; then prove=yes; shift; fi
case ${1:--} in -*) usage ;; esac
out=$1
shift
mkdir -p "$out"
[ -z "$prove" ] || [ -z "$(ls -A "$out")" ] || die "--prove compares all that is in a folder, and $out is not empty"
out=$(cd "$out" && pwd)

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
target=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
machine=${target%%-*} libc=${target##*-}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct "$commit")}
url=${HEAPWRIGHT_RELEASE_URL:-file://$out}
case $machine in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; *) die "no packages for $machine" ;; esac
formats=("$@")
[ ${#formats[@]} -gt 0 ] || if [ "$libc" = musl ]; then formats=(apk tar source); else formats=(deb rpm archlinux tar source); fi
for format in "${formats[@]}"; do
    case $format in
        apk) [ "$libc" = musl ] || die "an .apk is for musl: CARGO_BUILD_TARGET=$machine-unknown-linux-musl" ;;
        deb | rpm | archlinux) [ "$libc" = gnu ] || die "a .$format is for glibc" ;;
        tar | source) ;;
        *) usage ;;
    esac
done

# build FOLDER: builds what is shipped into FOLDER. No path of this machine stays in it.
build() {
    local work=$1/target package shared=$1/target shared_flags= launcher_flags= variable
    mkdir -p "$1"
    (
        unset "${!HEAPWRIGHT_EMBED_@}" "${!CARGO_PROFILE_@}"
        export CARGO_BUILD_TARGET=$target CARGO_PROFILE_RELEASE_STRIP=debuginfo
        # The last that fits counts, so the innermost folder comes last.
        export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$ROOT=/heapwright \
            --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$work=/target"
        if [ "$libc" = musl ]; then
            # For musl Rust makes static programs, as the command and the launcher shall be; the libraries are for others.
            shared=$work/shared shared_flags="-C target-feature=-crt-static --remap-path-prefix=$work/shared=/target"
        fi
        (
            export CARGO_TARGET_DIR=$shared RUSTFLAGS="$RUSTFLAGS $shared_flags"
            if [ "$libc" = musl ] && type -P musl-gcc >/dev/null; then
                variable=CARGO_TARGET_${target^^}_LINKER
                export "${variable//-/_}=musl-gcc"
            fi
            # With debug information, which stage_debug takes out.
            export CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
            for package in heapwright-malloc heapwright-hardened heapwright-check; do
                cargo build --quiet --release --locked -p $package
            done
        )
        export CARGO_TARGET_DIR=$work
        # It has start code of its own, and Rust would link musl's beside it.
        [ "$libc" != musl ] || launcher_flags="-C link-self-contained=no"
        RUSTFLAGS="$RUSTFLAGS $launcher_flags" cargo build --quiet --release --locked -p heapwright-launcher
        shared=$shared/$target/release
        export HEAPWRIGHT_EMBED_LIBRARY=$work/libheapwright.so HEAPWRIGHT_EMBED_CHECK_LIBRARY=$work/libheapwright_check.so
        "${STRIP:-strip}" --strip-debug -o "$HEAPWRIGHT_EMBED_LIBRARY" "$shared/libheapwright.so"
        "${STRIP:-strip}" --strip-debug -o "$HEAPWRIGHT_EMBED_CHECK_LIBRARY" "$shared/libheapwright_check.so"
        export HEAPWRIGHT_EMBED_LAUNCHER=$work/$target/release/heapwright-launcher
        cargo build --quiet --release --locked -p heapwright-cli
        cp "$work/$target/release"/{heapwright,cargo-heapwright} "$1/"
        cp "$shared"/{libheapwright.so,libheapwright.a,libheapwright_hardened.so,libheapwright_check.so} "$1/"
    )
}
if [ -z "${HEAPWRIGHT_BUILT:-}" ]; then
    HEAPWRIGHT_BUILT=$CARGO_TARGET_DIR/packaged
    build "$HEAPWRIGHT_BUILT"
fi
HEAPWRIGHT_BUILT=$(cd "$HEAPWRIGHT_BUILT" && pwd)

if [ -n "$prove" ]; then
    # Another checkout of the same commit, in another folder.
    git worktree add --quiet --detach "$SCRATCH/another" "$commit"
    trap 'git worktree remove --force "$SCRATCH/another"; tidy' EXIT
    env -u HEAPWRIGHT_BUILT CARGO_TARGET_DIR="$SCRATCH/another-target" HEAPWRIGHT_RELEASE_URL="$url" \
        "$SCRATCH/another/packaging/package.sh" "$SCRATCH/second" "${formats[@]}"
fi

# alone PAGE: a page as it stands in a package, which has no other page: links are their words.
alone() { sed -E -e '/^!\[/d' -e '/^<!--/d' -e 's/\[([^][]*)\]\([^):]*\)/\1/g' "$1"; }

# stage FOLDER LIBDIR: what packages have below /usr, every file with the same time.
stage() {
    rm -rf "$1"
    DESTDIR=$1 LIBDIR=$2 HEAPWRIGHT_LIBRARY_DIR=$HEAPWRIGHT_BUILT sh packaging/install.sh /usr >/dev/null
    DESTDIR=$1 HEAPWRIGHT_COMMAND_DIR=$HEAPWRIGHT_BUILT sh packaging/install-command.sh /usr
    "${STRIP:-strip}" --strip-all "$1"/usr/bin/*
    chmod 644 "$1/usr/$2"/*.so
    install -d "$1/usr/share/doc/heapwright"
    alone README.md >"$1/usr/share/doc/heapwright/README.md"
    alone CHANGELOG.md >"$1/usr/share/doc/heapwright/CHANGELOG.md"
    chmod 644 "$1/usr/share/doc/heapwright"/*
}
# stage_debug FOLDER: the tree of the debug package. gdb and perf find a file there by the build-id.
stage_debug() {
    local library id file
    rm -rf "$1"
    for library in "$HEAPWRIGHT_BUILT"/*.so; do
        id=$(readelf -n "$library" | sed -n 's/.*Build ID: //p')
        file=$1/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
        mkdir -p "${file%/*}"
        "${OBJCOPY:-objcopy}" --only-keep-debug "$library" "$file"
        chmod 644 "$file"
    done
}
settle() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }
pages() { find "$1/usr/share/man" -name '*.[13]' -exec gzip -9n {} +; }
licences() { install -D -m 644 -t "$1/usr/share/licenses/heapwright" LICENSE-MIT LICENSE-APACHE; }
# tarball FOLDER NAME FILE: an archive of FOLDER/NAME.
tarball() {
    tar -C "$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -c "$2" |
        xz -9 --threads=1 >"$3"
}

find_nfpm() {
    NFPM=${NFPM:-$(type -P nfpm || true)}
    [ -n "$NFPM" ] && return
    NFPM=$CARGO_TARGET_DIR/tools/nfpm-$NFPM_VERSION/nfpm
    [ -x "$NFPM" ] && return
    command -v go >/dev/null || die "nfpm is not there, nor Go to build it with: go install github.com/goreleaser/nfpm/v2/cmd/nfpm@$NFPM_VERSION"
    say "building nfpm"
    GOBIN=$(dirname "$NFPM") go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$NFPM_VERSION"
}
# The newest version of glibc's symbols that the files ask for.
glibc() { readelf -W --dyn-syms "$@" | grep -o '@GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n 1; }

# package_of FORMAT STAGE RELEASE DEPENDENCY...
package_of() {
    summary="Memory toolkit with a malloc replacement, debug heap and heap profiler" section=devel \
        description='memory toolkit: malloc replacement, debug heap, heap profiler
  The command runs unmodified programs on the malloc of heapwright, finds heap
  bugs and leaks with stacks, and shows where memory comes from. The
  libraries are there to link with or to preload: malloc, operators of C++,
  heaps, pools, arenas and a collected heap for C.' \
        nfpm_package heapwright "$@"
}
# debug_package_of FORMAT NAME RELEASE: the package of debug information, of the same version.
debug_package_of() {
    local folder=$SCRATCH/$1-debug doc
    doc=$folder/usr/share/doc/$2
    stage_debug "$folder"
    if [ "$1" = deb ]; then
        mkdir -p "${doc%/*}"
        ln -s heapwright "$doc"
    fi
    summary="Debug information of the libraries of heapwright" section=debug \
        description='debug information of the libraries of heapwright
  gdb and perf find these files by the build-ids of the libraries, and show
  lines of source in their frames.' \
        nfpm_package "$2" "$1" "$folder" "$3" "heapwright$([ "$1" != deb ] || printf " (= %s)" "$version")"
}
# nfpm_package NAME FORMAT STAGE RELEASE DEPENDENCY...: with $summary, $section and $description.
nfpm_package() {
    local name=$1 format=$2 folder=$3 release=$4 depends
    local specification=$SCRATCH/$format.yaml
    shift 4
    depends=$(printf '  - %s\n' "$@")
    settle "$folder"
    sed -e "s|@NAME@|$name|" -e "s|@ARCH@|$debian|" -e "s|@VERSION@|$version|" \
        -e "s|@RELEASE@|$release|" -e "s|@STAGE@|$folder/usr|" -e "s|@MAINTAINER@|$MAINTAINER|" \
        -e "s|@SECTION@|$section|" -e "s|@SUMMARY@|$summary|" \
        -e "s|@MTIME@|$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)|" \
        packaging/nfpm.yaml.in |
        awk -v depends="$depends" -v description="$description" '
            $0 == "@DEPENDS@" { print depends; next }
            $0 == "@DESCRIPTION@" { print "description: |-\n  " description; next }
            { print }' >"$specification"
    # The debug package has no library for the loader's cache.
    [ "$section" = devel ] || sed -i -e '/^  triggers:/,/- ldconfig/d' -e '/^overrides:/,/postremove:/d' "$specification"
    # nfpm writes a tree's folders into an .apk with Go's bit for folders among the permissions, and apk-tools refuses the
    # file. So each file is named.
    if [ "$format" = apk ]; then
        sed -i '/^contents:/,/type: tree/d' "$specification"
        (cd "$folder" && echo contents: &&
            find usr ! -type d -printf "  - src: $folder/%p\n    dst: /%p\n") >>"$specification"
    fi
    find_nfpm
    "$NFPM" package --config "$specification" --packager "$format" --target "$out/" >/dev/null
}

make_deb() {
    local folder=$SCRATCH/deb doc=$SCRATCH/deb/usr/share/doc/heapwright
    stage "$folder" "lib/$machine-linux-gnu"
    pages "$folder"
    # Debian's policy wants these folders.
    mkdir -p "$folder/usr/share/zsh/vendor-completions" "$folder/usr/share/lintian/overrides"
    mv "$folder/usr/share/zsh/site-functions/_heapwright" "$folder/usr/share/zsh/vendor-completions/"
    rmdir "$folder/usr/share/zsh/site-functions"
    gzip -9n "$doc/CHANGELOG.md"
    mv "$doc/CHANGELOG.md.gz" "$doc/NEWS.gz"
    printf 'heapwright (%s) unstable; urgency=medium\n\n  * Version %s; what is new is in NEWS.gz.\n\n -- %s  %s\n' "$version" "$version" \
        "$MAINTAINER" \
        "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
    install -m 644 packaging/lintian-overrides "$folder/usr/share/lintian/overrides/heapwright"
    {
        printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: heapwright\n\nFiles: *\n'
        printf 'Copyright: The heapwright developers\nLicense: Expat or Apache-2.0\n\nLicense: Expat\n'
        sed -e 's/^$/./' -e 's/^/ /' LICENSE-MIT
        printf '\nLicense: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n'
    } >"$doc/copyright"
    package_of deb "$folder" "" "libc6 (>= $(glibc "$folder/usr/bin/heapwright" "$folder/usr/lib/$machine-linux-gnu"/*.so))" libgcc-s1
    debug_package_of deb heapwright-dbg ""
}
make_rpm() {
    stage "$SCRATCH/rpm" lib64
    pages "$SCRATCH/rpm"
    licences "$SCRATCH/rpm"
    package_of rpm "$SCRATCH/rpm" 1 "glibc >= $(glibc "$SCRATCH/rpm/usr/bin/heapwright" "$SCRATCH/rpm/usr/lib64"/*.so)" libgcc
    debug_package_of rpm heapwright-debuginfo 1
}
make_archlinux() {
    stage "$SCRATCH/arch" lib
    pages "$SCRATCH/arch"
    licences "$SCRATCH/arch"
    package_of archlinux "$SCRATCH/arch" 1 glibc gcc-libs
    debug_package_of archlinux heapwright-debug 1
}
make_apk() {
    stage "$SCRATCH/apk" lib
    pages "$SCRATCH/apk"
    licences "$SCRATCH/apk"
    local library needs=()
    for library in "$SCRATCH/apk/usr/lib"/*.so; do
        if readelf -d "$library" | grep 'NEEDED.*libgcc_s' >/dev/null; then needs=(libgcc); fi
    done
    package_of apk "$SCRATCH/apk" 0 musl "${needs[@]}"
    debug_package_of apk heapwright-dbg 0
}
archive=heapwright-$version-$machine-linux-$libc
make_tar() {
    local folder=$SCRATCH/tar
    stage "$folder" lib
    mv "$folder/usr" "$folder/$archive"
    # The archive may be unpacked anywhere.
    sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$folder/$archive/lib/pkgconfig/heapwright.pc"
    sed "s|@VERSION@|$version|" packaging/meson.build >"$folder/$archive/meson.build"
    install -m 644 LICENSE-MIT LICENSE-APACHE "$folder/$archive/"
    alone README.md >"$folder/$archive/README.md"
    rm -r "$folder/$archive/share/doc"
    tarball "$folder" "$archive" "$out/$archive.tar.xz"
    stage_debug "$folder/debug"
    mv "$folder/debug/usr" "$folder/$archive-dbg"
    tarball "$folder" "$archive-dbg" "$out/$archive-dbg.tar.xz"
}
make_source() {
    git archive --prefix="heapwright-$version/" "$commit" | tar -x -C "$SCRATCH"
    tarball "$SCRATCH" "heapwright-$version" "$out/heapwright-$version.tar.xz"
}
# fill FILE ARCHIVE: of a template, with the archive's name, place and checksum.
fill() {
    local sum
    sum=$(sha256sum "$out/$2" | cut -d' ' -f1)
    sed -e "s|@VERSION@|$version|" -e "s|@URL@|$url|" -e "s|@SHA256@|$sum|" -e "s|@FILE@|$2|" -e "s|@DIRECTORY@|${2%.tar.xz}|" \
        "packaging/$1.in" >"$out/$1"
}

for format in "${formats[@]}"; do
    case $format in
        tar) make_tar && fill heapwright.wrap "$archive.tar.xz" ;;
        source) make_source && fill PKGBUILD "heapwright-$version.tar.xz" && fill heapwright.rb "heapwright-$version.tar.xz" ;;
        *) "make_$format" ;;
    esac
done
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
if [ -n "$prove" ]; then
    diff "$SCRATCH/second/SHA256SUMS" "$out/SHA256SUMS" || die "two builds of one commit differ"
    say "ok   two builds of this commit, in two folders, are equal"
fi
say "packages of heapwright $version in $out:"
ls -l "$out"
