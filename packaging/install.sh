#!/bin/sh
# Installs the C library for programs to link with or to preload:
#
#   packaging/install.sh PREFIX
#
#   PREFIX/lib/libheapwright.so        for -lheapwright and LD_PRELOAD
#   PREFIX/lib/libheapwright-hardened.so   for LD_PRELOAD and /etc/ld.so.preload: mode=hardened, and the C
#                                          library's writers checked
#   PREFIX/lib/libheapwright-check.so  for LD_PRELOAD: mode=debug, and what the C library's functions read and write
#                                          checked, as `heapwright check` does
#   PREFIX/lib/libheapwright.a         for static linking
#   PREFIX/lib/pkgconfig/heapwright.pc
#   PREFIX/lib/cmake/heapwright/       find_package(heapwright): heapwright::shared, ::static, ::hardened, ::check
#   PREFIX/share/man/man3/             heapwright(3), and a page for each function (needs python3)
#   PREFIX/include/heapwright.h
#   PREFIX/include/heapwright_gc.h     collected heaps (hw_gc_*)
#
# Environment: DESTDIR is put before PREFIX (packagers), LIBDIR replaces "lib",
# HEAPWRIGHT_LIBRARY_DIR names a directory with libraries that are built already, SOURCE_DATE_EPOCH gives the pages' date.
set -eu

if [ $# -ne 1 ] || [ "${1#/}" = "$1" ]; then
    echo "usage: packaging/install.sh PREFIX (an absolute path, such as /usr/local)" >&2
    exit 2
fi
prefix=${1%/}
libdir=${LIBDIR:-lib}
root=${DESTDIR:-}$prefix
cd "$(dirname "$0")/.."

if [ -z "${HEAPWRIGHT_LIBRARY_DIR:-}" ]; then
    # Alone: with other members of the workspace, their features could bring std in.
    cargo build --release -p heapwright-malloc
    cargo build --release -p heapwright-hardened
    cargo build --release -p heapwright-check
    HEAPWRIGHT_LIBRARY_DIR=${CARGO_TARGET_DIR:-target}/release
fi
shared=$HEAPWRIGHT_LIBRARY_DIR/libheapwright.so
archive=$HEAPWRIGHT_LIBRARY_DIR/libheapwright.a
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The archive. A program should see only the names that the shared library exports, and may define operators of its own:
# those of C++ become weak, as in every C++ runtime. dlopen and dlclose stay out: a static program lacks them,
# and a dynamic program finds those of the C library.
nm -D --defined-only "$shared" | awk '{ print $3 }' | grep -v -E '^(dlopen|dlclose)$' > "$work/exports"
grep '^_Z' "$work/exports" > "$work/weak"
sed 's/^/-u /' "$work/exports" > "$work/undefined"
# -d: one relocatable object of all that the exports need.
# shellcheck disable=SC2046
"${LD:-ld}" -r -o "$work/heapwright.o" $(cat "$work/undefined") "$archive"
"${OBJCOPY:-objcopy}" --keep-global-symbols="$work/exports" --weaken-symbols="$work/weak" \
    --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd "$work/heapwright.o"
"${AR:-ar}" rcs "$work/libheapwright.a" "$work/heapwright.o"

# From lib, or lib/x86_64-linux-gnu, up to PREFIX.
up=$(printf %s "$libdir" | sed 's|[^/][^/]*|..|g')
for file in heapwright.pc heapwright-config.cmake heapwright-config-version.cmake; do
    sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@VERSION@|$version|" -e "s|@UP@|$up|" \
        "packaging/$file.in" > "$work/$file"
done

mkdir -p "$root/$libdir/pkgconfig" "$root/$libdir/cmake/heapwright" "$root/include"
# install_library FROM TO: without debug information, by which a debugger would take functions of ours for the C
# library's. Symbols stay: reports leave frames of the libraries out by their names.
install_library() {
    "${STRIP:-strip}" --strip-debug -o "$work/library" "$1"
    install -m 755 "$work/library" "$root/$libdir/$2"
}
install_library "$shared" libheapwright.so
for kind in hardened check; do
    library=$HEAPWRIGHT_LIBRARY_DIR/libheapwright_$kind.so
    if [ -f "$library" ]; then
        install_library "$library" "libheapwright-$kind.so"
    else
        echo "packaging/install.sh: $library is not there; libheapwright-$kind.so is not installed" >&2
    fi
done
install -m 644 "$work/libheapwright.a" "$root/$libdir/libheapwright.a"
install -m 644 "$work/heapwright.pc" "$root/$libdir/pkgconfig/heapwright.pc"
install -m 644 "$work/heapwright-config.cmake" "$work/heapwright-config-version.cmake" "$root/$libdir/cmake/heapwright/"
install -m 644 include/heapwright.h include/heapwright_gc.h "$root/include/"
if command -v python3 >/dev/null; then
    python3 packaging/man3.py "$version" "$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)" "$root/share/man/man3" \
        include/heapwright.h include/heapwright_gc.h
else
    echo "packaging/install.sh: there is no python3; manual pages are not installed" >&2
fi
echo "installed heapwright $version in $root"
