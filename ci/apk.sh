#!/usr/bin/env bash
# The .apk of ci/package.sh in a root of musl's: what apk-tools reads of a package is looked at, then the package is installed, used
# and removed.
#
#   ci/apk.sh
#
# - Each part: the checksum that the description gives of the files, each file's own, permissions that are octal numbers (apk-tools
#   refuses others).
# - In the root: the command runs and checks a program, the libraries preload by their names, a program is linked with the archive.
# - After its removal the root is what it was.
#
# apk-tools is in none of Debian's packages. Where there is one (APK: the program, default: on PATH) it installs and removes,
# else tar does.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. ci/musl-common.sh

packages musl musl-dev musl-tools busybox-static linux-libc-dev
[ "$(uname -m)" = x86_64 ] || die "this is for x86-64"
musl_targets
APK=${APK:-$(type -P apk || true)}

# In a third of the time that what is shipped takes (which is ci/package.sh's, without HEAPWRIGHT_BUILT), and the command, whose files
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
ci/package.sh "$SCRATCH/out" apk >"$SCRATCH/said" 2>&1 || { cat "$SCRATCH/said"; die "the package is not made"; }
(umask 077 && TZ=Asia/Tokyo ci/package.sh "$SCRATCH/again" apk >/dev/null 2>&1)
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
