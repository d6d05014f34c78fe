#!/bin/sh
# Builds the collector for a Ruby that was configured with --with-modular-gc.
#
#   runtimes/ruby/build.sh SOURCE BUILD LIBRARY OUT
#
#       SOURCE   Ruby's source, 3.4.5 or 4.0.1
#       BUILD    the folder where it was configured; for 4.0.1 also made, for its generated headers
#       LIBRARY  libheapwright.so         OUT     the folder of --with-modular-gc
#
# CC and CFLAGS may be set. Then: RUBY_GC_LIBRARY=heapwright ruby ...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd) build=$(cd "$2" && pwd) library=$3 out=$4

defined() { sed -n "s/^#define $1 \([0-9]*\)\$/\1/p" "$source/$2"; }
version=$(defined RUBY_API_VERSION_MAJOR include/ruby/version.h).$(defined RUBY_API_VERSION_MINOR include/ruby/version.h).$(defined RUBY_VERSION_TEENY version.h)
case $version in
3.4.5 | 4.0.1) ;;
*)
    echo "build.sh: the port is for Ruby 3.4.5 and 4.0.1, and $source is $version" >&2
    exit 1
    ;;
esac
arch=$(cd "$build/.ext/include" && ls -d */ | grep -v '^ruby/' | head -n 1)
mkdir -p "$out"
# Renamed into place, because running processes keep the file that they have loaded.
cp "$library" "$out/libheapwright.so.new"
mv "$out/libheapwright.so.new" "$out/libheapwright.so"
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS:--O3 -fno-plt} -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -std=gnu11 -fPIC -shared -DBUILDING_MODULAR_GC \
    -I"$build/.ext/include/$arch" -I"$source/include" -I"$source" -I"$build" -I"$here/../../include" \
    -o "$out/librubygc.heapwright.so.new" "$here"/*.c -L"$out" -l:libheapwright.so -Wl,-rpath,'$ORIGIN'
mv "$out/librubygc.heapwright.so.new" "$out/librubygc.heapwright.so"
