#!/usr/bin/env bash
# Tests the packages of packaging/package.sh, but for the .apk (ci/musl.sh apk). Two builds are equal.
#
# - .deb: lintian reports no error or warning. In a bare Debian root dpkg installs it, the command runs a program, and a
#   C program is built against it. After its removal the root's files are as before.
# - .rpm: rpm installs it in a root, verifies and removes it. .pkg.tar.zst: tar unpacks it. Their commands run.
# - PKGBUILD installs its files from the archive of the sources; the formula is Ruby, if a Ruby is installed to tell.
# - The binary archive: after it was moved, find_package (shared, static, hardened) and pkg-config (shared) find it, and
#   its manual pages are well made. A Meson wrap unpacks the archive itself.
# - The image (packaging/image.sh): at most 5 MB as a layer packed by zstd (6 from .ci/run), and it runs by chroot.
#
# HEAPWRIGHT_BUILT has the packages' files. By default they are built here, or by .ci/run: speed is not tested.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup packages

if [ -z "${HEAPWRIGHT_BUILT:-}" ]; then
    all_libraries
    cargo build --quiet --release --locked -p heapwright-cli
    HEAPWRIGHT_BUILT=$SCRATCH/built
    mkdir "$HEAPWRIGHT_BUILT"
    cp "$HEAPWRIGHT_SO" "$(dirname "$HEAPWRIGHT_SO")/libheapwright.a" "$HEAPWRIGHT_HARDENED_SO" "$HEAPWRIGHT_CHECK_SO" "$HEAPWRIGHT_BUILT/"
    cp "$CARGO_TARGET_DIR"/release/{heapwright,cargo-heapwright} "$HEAPWRIGHT_BUILT/"
fi
HEAPWRIGHT_BUILT=$(cd "$HEAPWRIGHT_BUILT" && pwd)
export HEAPWRIGHT_BUILT HEAPWRIGHT_RELEASE_URL=https://example.invalid/heapwright
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
machine=$(uname -m)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

out=$SCRATCH/out
packaging/package.sh "$out" >"$SCRATCH/said" || { cat "$SCRATCH/said"; die "the packages are not made"; }
# The second build has another time, user's mask, time zone and folder.
sleep 1
(umask 077 && TZ=Asia/Tokyo packaging/package.sh "$SCRATCH/again" deb rpm archlinux >/dev/null)
for file in "$SCRATCH"/again/*{.deb,.rpm,.zst}; do
    cmp "$file" "$out/$(basename "$file")" || die "a second package differs"
done
(cd "$out" && sha256sum --quiet -c SHA256SUMS)
say "ok   made twice, the packages are equal"

cp packaging/tests/owns.c "$SCRATCH/"

# (CI's debug files have only symbols.)
lintian --allow-root --fail-on error,warning --suppress-tags debug-file-with-no-debug-symbols "$out"/*.deb || die "lintian complains"
say "ok   lintian"
base=$CARGO_TARGET_DIR/tools/debian-root.tar
if [ ! -f "$base" ]; then
    mkdir -p "${base%/*}"
    mmdebstrap --quiet --mode=root --variant=essential --include=libc6-dev,gcc "$(. /etc/os-release && echo "$VERSION_CODENAME")" "${base%.tar}.new.tar"
    mv "${base%.tar}.new.tar" "$base"
fi
root=$SCRATCH/debian
mkdir "$root"
tar -xf "$base" -C "$root" --exclude=./dev
cp "$out"/*.deb "$SCRATCH/owns.c" "$root/tmp/"
files() { (cd "$root" && find . -xdev ! -path './var/lib/dpkg/*' ! -path './var/log/*' ! -path './var/cache/ldconfig/*' ! -path './var/cache/debconf/*' ! -path './tmp/*' ! -path ./etc/ld.so.cache -printf '%y %m %s %p %l\n' | sort); }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp "$@"; }
files | awk '$1 != "d"' >"$SCRATCH/before"
inside sh -c 'dpkg -i /tmp/*.deb' >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "dpkg does not install it"; }
inside heapwright run --stats -- ls / 2>&1 | grep -q rounding || die "no statistics in the root"
inside sh -c 'gcc -o /tmp/owns /tmp/owns.c -lheapwright && /tmp/owns' || die "a C program does not find the library"
inside env LD_PRELOAD=libheapwright-hardened.so HEAPWRIGHT=stats=exit ls / 2>&1 | grep -q '^heapwright: ' || die "the hardened library is not found by its name"
id=$(readelf -n "$root/usr/lib/$machine-linux-gnu/libheapwright.so" | sed -n 's/.*Build ID: //p')
[ -s "$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" ] ||
    die "the debug package has no file for the build-id of libheapwright.so"
inside dpkg --purge heapwright-dbg heapwright >/dev/null
files | awk '$1 != "d"' | diff "$SCRATCH/before" - || die "the package's removal leaves a changed root"
say "ok   .deb: installed in a bare root, used, removed without a trace"

[ "$(rpm -K --nosignature "$out"/*.rpm | grep -c 'digests OK')" -eq 2 ] || die "rpm does not accept its digests"
mkdir "$SCRATCH/rpm"
rpm --root "$SCRATCH/rpm" --dbpath /db -i --nodeps --nosignature "$out"/*.rpm 2>"$SCRATCH/said" || { cat "$SCRATCH/said"; die "rpm does not install it"; }
HOME=$SCRATCH "$SCRATCH/rpm/usr/bin/heapwright" run --stats -- true 2>&1 | grep -q rounding || die "no statistics by the rpm's command"
rpm --root "$SCRATCH/rpm" --dbpath /db -V --nodeps heapwright heapwright-debuginfo || die "rpm -V finds changes"
rpm --root "$SCRATCH/rpm" --dbpath /db -e --nodeps heapwright heapwright-debuginfo 2>"$SCRATCH/said" || { cat "$SCRATCH/said"; die "rpm does not remove it"; }
[ -z "$(find "$SCRATCH/rpm/usr" -type f 2>/dev/null)" ] || die "the rpm leaves files behind"
say "ok   .rpm: installed, used, removed"

mkdir "$SCRATCH/arch"
tar --zstd -xf "$out"/heapwright-[0-9]*.pkg.tar.zst -C "$SCRATCH/arch"
grep -q '^pkgname = heapwright$' "$SCRATCH/arch/.PKGINFO" && [ -s "$SCRATCH/arch/.MTREE" ] || die "the Arch package has no description"
HOME=$SCRATCH "$SCRATCH/arch/usr/bin/heapwright" run --stats -- true 2>&1 | grep -q rounding || die "no statistics by the Arch package's command"
mkdir -p "$SCRATCH/src" "$SCRATCH/pkg"
(
    . "$out/PKGBUILD"
    echo "${sha256sums[0]}  $out/heapwright-$pkgver.tar.xz" | sha256sum --quiet -c
    tar -xf "$out/heapwright-$pkgver.tar.xz" -C "$SCRATCH/src"
    mkdir -p "$SCRATCH/src/heapwright-$pkgver/target"
    ln -s "$HEAPWRIGHT_BUILT" "$SCRATCH/src/heapwright-$pkgver/target/release"
    cd "$SCRATCH/src"
    pkgdir=$SCRATCH/pkg
    package >/dev/null
)
[ -x "$SCRATCH/pkg/usr/bin/heapwright" ] && [ -f "$SCRATCH/pkg/usr/lib/libheapwright-check.so" ] || die "PKGBUILD installs too little"
if command -v ruby >/dev/null; then ruby -c "$out/heapwright.rb" >/dev/null || die "the formula is not Ruby"; fi
say "ok   Arch's package and recipe, Homebrew's formula"

# The archive is moved, so that no file can depend on its first place.
tar -xf "$out/heapwright-$version-$machine-linux-gnu.tar.xz" -C "$SCRATCH"
mv "$SCRATCH/heapwright-$version-$machine-linux-gnu" "$SCRATCH/moved"
mkdir "$SCRATCH/cmake"
cp packaging/tests/{owns.c,CMakeLists.txt} "$SCRATCH/cmake/"
cmake -S "$SCRATCH/cmake" -B "$SCRATCH/cmake/build" -DCMAKE_PREFIX_PATH="$SCRATCH/moved" >"$SCRATCH/said" 2>&1 &&
    cmake --build "$SCRATCH/cmake/build" >>"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "CMake does not find or build with it"; }
for kind in shared static hardened; do "$SCRATCH/cmake/build/owns-$kind" || die "CMake's $kind program is not on heapwright"; done
# CMake finds the package by a link, as in /lib where that is /usr/lib.
mkdir "$SCRATCH/linked"
ln -s ../moved/lib "$SCRATCH/linked/lib"
cmake -S "$SCRATCH/cmake" -B "$SCRATCH/cmake/linked" -DCMAKE_PREFIX_PATH="$SCRATCH/linked" >"$SCRATCH/said" 2>&1 &&
    cmake --build "$SCRATCH/cmake/linked" --target owns-static >>"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "CMake does not find it by a link"; }
sed -i 's/heapwright 0.1 REQUIRED)/heapwright 0.99 REQUIRED)/' "$SCRATCH/cmake/CMakeLists.txt"
if cmake -S "$SCRATCH/cmake" -B "$SCRATCH/cmake/build" >/dev/null 2>&1; then die "CMake takes it for version 0.99"; fi
# shellcheck disable=SC2046 # flags
cc -o "$SCRATCH/owns" "$SCRATCH/owns.c" $(PKG_CONFIG_PATH=$SCRATCH/moved/lib/pkgconfig pkg-config --cflags --libs heapwright)
LD_LIBRARY_PATH=$SCRATCH/moved/lib "$SCRATCH/owns" || die "pkg-config's program is not on heapwright"
mkdir -p "$SCRATCH/meson/subprojects/packagecache"
cp packaging/tests/{owns.c,meson.build} "$SCRATCH/meson/"
cp "$out/heapwright.wrap" "$SCRATCH/meson/subprojects/"
cp "$out/heapwright-$version-$machine-linux-gnu.tar.xz" "$SCRATCH/meson/subprojects/packagecache/"
meson setup "$SCRATCH/meson/build" "$SCRATCH/meson" >"$SCRATCH/said" 2>&1 && meson test -C "$SCRATCH/meson/build" >>"$SCRATCH/said" 2>&1 ||
    { cat "$SCRATCH/said"; die "Meson does not find or build with the wrap"; }
say "ok   find_package, pkg-config and a Meson wrap, in a folder that was moved"

mandoc -Tlint -W error "$SCRATCH"/moved/share/man/man[13]/*.[13] || die "a manual page is not well made"
man -l "$SCRATCH/moved/share/man/man3/hw_heap_new.3" | grep -q 'struct hw_heap \*hw_heap_new(void);' || die "hw_heap_new(3) has no synopsis"
say "ok   manual pages"

packaging/image.sh "$SCRATCH/moved" "$SCRATCH/image.tar.zst"
mkdir "$SCRATCH/image"
tar --zstd -xf "$SCRATCH/image.tar.zst" -C "$SCRATCH/image"
size=$(stat -c %s "$SCRATCH/image.tar.zst")
# (Without link-time optimisation, as in CI, the command is a megabyte larger.)
most=5242880
[ "${CARGO_PROFILE_RELEASE_LTO:-fat}" != off ] || most=6291456
[ "$size" -le $most ] || die "the image has $size bytes, more than $most"
# A program that a derived image would contain runs as ENTRYPOINT runs it. The image is read-only.
cc -o "$SCRATCH/image/usr/bin/program" -x c - <<<'#include <stdlib.h>
int main(void) { return malloc(100) == NULL; }'
contained() { env -i HEAPWRIGHT_LIBRARY=/usr/lib/libheapwright.so PATH=/usr/bin "$(type -P chroot)" "$SCRATCH/image" "$@"; }
contained heapwright run --stats -- program 2>&1 | grep -q rounding || die "no statistics in the image"
[ -z "$(find "$SCRATCH/image" -name '*.so' -newer "$SCRATCH/image.tar.zst")" ] || die "the command extracted a library in the image"
say "ok   image: $size bytes"
