#!/usr/bin/env bash
# The root of a container image with the command, the library, and the C library that both need.
#
#   packaging/image.sh FOLDER OUT.tar.xz      (or OUT.tar, OUT.tar.gz, OUT.tar.zst)
#       FOLDER: the binary archive of packaging/package.sh, unpacked
#
# With `FROM scratch` and `ADD OUT.tar.xz /` it is an image (docs/install.md); no container runtime is needed here.
# The library lies beside the command, which would else extract it at its first run: a container may be read-only.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: packaging/image.sh FOLDER OUT.tar[.xz|.gz|.zst]" >&2; exit 2; }
from=$1 out=$2
case $out in
    *.tar.xz) pack() { xz -9 --threads=1; } ;;
    *.tar.gz) pack() { gzip -9n; } ;;
    # A window that holds the library and its copy in the command; every reader takes as much.
    *.tar.zst) pack() { zstd -19 --long=25 --quiet --stdout; } ;;
    *.tar) pack() { cat; } ;;
    *) echo "packaging/image.sh: $out has no ending that says how it is to be packed" >&2; exit 2 ;;
esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

mkdir -p "$root"/usr/bin "$root"/usr/lib "$root"/etc
install -d -m 1777 "$root/tmp"
cp "$from/lib/libheapwright.so" "$root/usr/lib/"
cp "$from/bin/heapwright" "$root/usr/bin/"
# The loader and the libraries, where the loader looks for them.
ldd "$from/bin/heapwright" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
# The library comes first, so the copy in the command costs nothing.
tar -C "$root" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner --format=gnu -c \
    usr/lib usr/bin etc tmp $(cd "$root" && ls | grep -vxE 'usr|etc|tmp') | pack >"$out"
