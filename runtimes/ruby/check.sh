#!/usr/bin/env bash
# Tests Ruby on the collected heap (runtimes/ruby). Configures Debian's source of 3.4.5. The collector must compile
# against it without a warning, also with each proposal for Ruby's interface (patches/), and against 4.0.1 if
# RUBY40_SOURCE names a folder of its source. Without Ruby's source the script says so and passes.
#
#   runtimes/ruby/check.sh                           this test alone; all others also build Ruby
#   runtimes/ruby/check.sh suite                     bootstrap tests, the core of Ruby's suite and the port's test pass.
#                                                    Specifications fail only if they fail on Ruby's collector, too
#   runtimes/ruby/check.sh bench [ROUNDS] [NAME...]  a table of the benchmarks beside Ruby's own collector (compare.py)
#   runtimes/ruby/check.sh pause [MIB SECONDS ROWS]  the longest pause of a large heap, under both collectors
#   runtimes/ruby/check.sh compact                   the memory that GC.compact gives back, under both collectors
#   runtimes/ruby/check.sh picture OUT.svg           draws memory and times of a load of requests (matplotlib)
#   runtimes/ruby/check.sh life [SECONDS]            a server with threads, sockets and forked workers under load: its
#                                                    memory must not grow
#
# With RUBY40_SOURCE (a release, or a checkout after ./autogen.sh), all parts build and run 4.0.1 instead.
#
# Two variables add columns to bench and lines to picture. RUBY_COLLECTORS has files librubygc.NAME.so of other
# collectors, built against this Ruby. JEMALLOC is a libjemalloc.so.2, preloaded under Ruby's own collector.
#
# OPTCARROT is a folder of github.com/mame/optcarrot, for bench. RUBY_BUILD is the folder where Ruby is built. A build
# takes a quarter of an hour, so the script keeps the folder.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../ci/common.sh"
setup ruby

preload_library
SOURCES=$CARGO_TARGET_DIR/ruby/sources

compile() { # VERSION OPTION...: configures $source in $build; the collector compiles, with gc_impl.h's functions alone
    mkdir -p "$build" "$collectors"
    if [ ! -f "$build/Makefile" ]; then
        say "configuring Ruby $1"
        (cd "$build" && "$source/configure" --quiet --with-modular-gc="$collectors" --disable-install-doc --disable-yjit "${@:2}" \
            >"$SCRATCH/configured" 2>&1) || { tail -n 20 "$SCRATCH/configured" >&2; die "Ruby cannot be configured"; }
    fi
    # A release has the generated headers.
    [ -f "$source/id.h" ] || make -C "$build" incs >"$SCRATCH/made" 2>&1 || { tail -n 20 "$SCRATCH/made" >&2; die "Ruby's headers are not made"; }
    CFLAGS="-O3 -fno-plt -Werror" sh runtimes/ruby/build.sh "$source" "$build" "$HEAPWRIGHT_SO" "$collectors" >"$SCRATCH/built" 2>&1 ||
        { cat "$SCRATCH/built" >&2; die "the collector does not compile"; }
    grep -o 'rb_gc_impl_[a-z_]*' "$source/gc/gc_impl.h" | sort -u >"$SCRATCH/asked"
    nm -D --defined-only "$collectors/librubygc.heapwright.so" | grep -o 'rb_gc_impl_[a-z_]*' | sort -u >"$SCRATCH/defined"
    diff "$SCRATCH/asked" "$SCRATCH/defined" >&2 || die "what Ruby $1 asks for (<) is not what the collector defines (>)"
    say "ok   the collector compiles against Ruby $1's headers, and has the functions that Ruby asks for"
}

source_package ruby3.4 experimental 3.4.5-1~exp1 || { say "skipped: no source of ruby3.4 3.4.5"; exit 0; }
# Debian's patches make configure.ac newer than the release's configure, and make would ask for autoconf.
touch -r "$SOURCES/ruby3.4/configure.ac" "$SOURCES/ruby3.4/configure"
source=$SOURCES/ruby3.4 build=${RUBY_BUILD:-$CARGO_TARGET_DIR/ruby/build} collectors=${RUBY_BUILD:-$CARGO_TARGET_DIR/ruby}.collectors
compile 3.4.5 --disable-rjit

# A proposal has a change to Ruby's source and a change to the port's. The port must compile with both.
for proposal in runtimes/ruby/patches/*.port.patch; do
    name=$(basename "$proposal" .port.patch) folder=$SCRATCH/proposal
    mkdir -p "$folder/runtimes/ruby" "$folder/ruby"
    cp -r "$source/." "$folder/ruby"
    cp runtimes/ruby/*.[ch] runtimes/ruby/build.sh "$folder/runtimes/ruby"
    ln -s "$PWD/include" "$folder/include"
    patch -s -p1 -d "$folder/ruby" <"runtimes/ruby/patches/$name.patch" && patch -s -p1 -d "$folder/runtimes/ruby" <"$proposal" &&
        CFLAGS="-O3 -fno-plt -Werror" sh "$folder/runtimes/ruby/build.sh" "$folder/ruby" "$build" "$HEAPWRIGHT_SO" "$folder/collectors" \
            >"$SCRATCH/built" 2>&1 || { cat "$SCRATCH/built" >&2; die "the proposal $name does not apply, or compile"; }
    rm -rf "$folder"
done
say "ok   proposals for Ruby's interface apply and compile"

if [ -n "${RUBY40_SOURCE:-}" ]; then
    source=$(cd "$RUBY40_SOURCE" && pwd) build=${RUBY_BUILD:-$CARGO_TARGET_DIR/ruby/build}4.0 collectors=${RUBY_BUILD:-$CARGO_TARGET_DIR/ruby}4.0.collectors
    compile 4.0.1 --disable-zjit
else
    say "skipped: Ruby 4.0.1, for RUBY40_SOURCE names no folder of its source"
fi
[ $# -gt 0 ] || exit 0

if [ ! -x "$build/ruby" ]; then
    say "building Ruby (a quarter of an hour)"
    make -C "$build" -j"$(nproc)" >"$SCRATCH/made" 2>&1 || { tail -n 20 "$SCRATCH/made" >&2; die "Ruby does not build"; }
fi
ruby="$build/ruby -I$source/lib -I$build -I$build/.ext/common -I$(dirname "$(find "$build/.ext" -name etc.so | head -n 1)")"
[ "$(RUBY_GC_LIBRARY=heapwright $ruby -e 'print GC.config[:implementation]')" = heapwright ] || die "Ruby does not load the collector"

more=()
for file in ${RUBY_COLLECTORS:-}; do
    name=$(basename "$file" .so) name=${name#librubygc.}
    # Renamed into place, because running processes keep the file that they have loaded.
    cp "$file" "$collectors/librubygc.$name.so.new" && mv "$collectors/librubygc.$name.so.new" "$collectors/librubygc.$name.so"
    [ "$(RUBY_GC_LIBRARY=$name $ruby -e 'print GC.config[:implementation]')" = "$name" ] || die "Ruby does not load $file"
    more+=(--with "$name=RUBY_GC_LIBRARY=$name")
done
[ -z "${JEMALLOC:-}" ] || { [ -f "$JEMALLOC" ] || die "there is no $JEMALLOC"; more+=(--with "jemalloc=LD_PRELOAD=$JEMALLOC"); }

case $1 in
suite)
    RUBY_GC_LIBRARY=heapwright make -C "$build" btest-ruby >"$SCRATCH/btest" 2>&1 || { tail -n 30 "$SCRATCH/btest" >&2; die "bootstrap tests fail"; }
    say "ok   bootstrap tests: $(grep -ao 'PASS all [0-9]*' "$SCRATCH/btest")"
    # Some specifications fail with Ruby's own collector, too.
    specifications() { # [COLLECTOR]: prints the names of those that fail
        env ${1:+RUBY_GC_LIBRARY="$1"} make -C "$build" test-spec MSPECOPT=-fd >"$SCRATCH/specified" 2>&1 || true
        grep -aq '^[0-9]* files, [0-9]* examples' "$SCRATCH/specified" || { tail -n 20 "$SCRATCH/specified" >&2; die "the specifications did not end"; }
        grep -a ' \(ERROR\|FAILED\)$' "$SCRATCH/specified" | sort -u || true
    }
    specifications heapwright >"$SCRATCH/ours"
    counts=$(grep -a '^[0-9]* files, [0-9]* examples' "$SCRATCH/specified")
    [ ! -s "$SCRATCH/ours" ] || specifications >"$SCRATCH/theirs"
    [ ! -s "$SCRATCH/ours" ] || new=$(comm -23 "$SCRATCH/ours" "$SCRATCH/theirs")
    [ -z "${new:-}" ] || die "specifications fail that do not with Ruby's own collector: $new"
    say "ok   Ruby's specifications: $counts, of which each fails with Ruby's own collector, too"
    # runtimes/ruby/excludes has the excluded tests and the reasons.
    tests=${RUBY_TESTS:-ruby objspace -ext-/gc -ext-/tracepoint -ext-/postponed_job}
    RUBY_GC_LIBRARY=heapwright make -C "$build" test-all \
        TESTS="-j$(nproc) --timeout-scale=4 --excludes-dir=$PWD/runtimes/ruby/excludes $tests" >"$SCRATCH/tested" 2>&1 ||
        { grep -a -A 12 '^ *[0-9]*) \(Fail\|Err\|Time\)' "$SCRATCH/tested" >&2; tail -n 5 "$SCRATCH/tested" >&2; die "Ruby's suite fails"; }
    say "ok   Ruby's suite: $(grep -a '^[0-9]* tests, ' "$SCRATCH/tested" | tail -n 1)"
    for options in verify verify,generations=0 verify,step=0 step=100; do
        RUBY_HEAPWRIGHT=$options RUBY_GC_LIBRARY=heapwright timeout 600 $ruby runtimes/ruby/test.rb >"$SCRATCH/told" 2>&1 &&
            [ "$(tail -n 1 "$SCRATCH/told")" = ok ] || { tail -n 20 "$SCRATCH/told" >&2; die "runtimes/ruby/test.rb fails with $options"; }
    done
    say "ok   the port's test, in four ways to collect, three of them verified"
    ;;
bench)
    rounds=${2:-7}
    shift $(($# < 2 ? $# : 2))
    python3 runtimes/ruby/compare.py "$ruby" --rounds "$rounds" --stdlib "$source/lib" ${OPTCARROT:+--optcarrot "$OPTCARROT"} "${more[@]}" "$@"
    ;;
pause | compact)
    for collector in "" heapwright; do
        say "${collector:-default}:"
        env ${collector:+RUBY_GC_LIBRARY=$collector} $ruby --disable-gems "runtimes/ruby/bench/$1.rb" "${@:2}"
    done
    ;;
picture)
    [ $# -eq 2 ] || die "where is the picture to go? runtimes/ruby/check.sh picture OUT.svg"
    folder=$CARGO_TARGET_DIR/ruby/matplotlib
    [ -x "$folder/bin/python" ] || { python3 -m venv "$folder" && "$folder/bin/pip" install --quiet --disable-pip-version-check matplotlib; } ||
        die "no Python environment for matplotlib"
    "$folder/bin/python" runtimes/ruby/picture.py "$ruby --disable-gems" "$2" "${more[@]}"
    ;;
life)
    RUBY_GC_LIBRARY=heapwright $ruby runtimes/ruby/life.rb "${2:-600}"
    ;;
*) die "there is no part '$1'; parts: suite bench pause compact picture life" ;;
esac
