#!/bin/sh
# Builds Lua 5.4.4 twice from its source: as it is, and with heapwright's collected heap.
#
#   runtimes/lua/build.sh SOURCE ARCHIVE OUT     SOURCE: Lua's src folder (Debian's lua5.4 5.4.4, or lua.org's);
#                                                ARCHIVE: libheapwright.a; OUT: a folder, for lua-own and lua-heapwright
#
# CC and CFLAGS may be set. OUT/headers has the second build's headers, for C modules.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd) archive=$(cd "$(dirname "$2")" && pwd)/$(basename "$2") out=$3

grep -q '^#define LUA_VERSION_RELEASE.*"4"' "$source/lua.h" && grep -q '^#define LUA_VERSION_MINOR.*"4"' "$source/lua.h" || {
    echo "build.sh: the patch is for Lua 5.4.4, and $source is another" >&2
    exit 1
}
rm -rf "$out/own" "$out/heapwright"
mkdir -p "$out"
cp -r "$source" "$out/own"
# Debian's luaconf.h wants the name of the architecture's folder, which its packaging writes.
printf '#define DEB_HOST_MULTIARCH "%s"\n' "$(uname -m)-linux-gnu" >"$out/own/lua5.4-deb-multiarch.h"
cp -r "$out/own" "$out/heapwright"
(cd "$out/heapwright" && patch -s -p1 <"$here/lua5.4.patch")
cp "$here/lgc.c" "$here/lgc.h" "$here/lheap.h" "$here/../../include/heapwright.h" "$here/../../include/heapwright_gc.h" "$out/heapwright"

build() { # FOLDER PROGRAM LIBRARIES...
    folder=$1 program=$2
    shift 2
    # shellcheck disable=SC2046,SC2086
    (cd "$folder" && ${CC:-cc} ${CFLAGS:--O2} -Wall -Wextra -std=gnu99 -DLUA_USE_LINUX $READLINE -DLUA_COMPAT_5_3 -I. \
        $(ls l*.c | grep -v '^luac\.c$') -o "$program" -Wl,-E "$@" -lm -ldl -lpthread ${READLINE:+-lreadline})
}
# Lua's suite needs readline: the prompt then echoes its input.
READLINE=$(printf '#include <stdio.h>\n#include <readline/readline.h>\n' | ${CC:-cc} -E - >/dev/null 2>&1 && echo -DLUA_USE_READLINE) || READLINE=
build "$out/own" ../lua-own
build "$out/heapwright" ../lua-heapwright "$archive"
