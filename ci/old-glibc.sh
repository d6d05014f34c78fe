#!/usr/bin/env bash
# Links libheapwright.so for old systems: from the archive, against stubs that have glibc 2.17's names and versions. So
# it needs no symbol of a later glibc, as the script checks (objdump -T). Then it runs in three modes and two more cache
# models: on this system's glibc with perl; on Debian 11's glibc 2.31 with that system's perl and with the tests' C
# programs, compiled for it. (No archive of packages that can be reached from here has an older glibc.)
#
#   ci/old-glibc.sh [FILE]             leaves the library there
#   HEAPWRIGHT_GLIBC_ROOTS="FOLDER..." also runs in these roots of other glibcs, with headers, start files and libgcc_s
#
# Newer symbols are weak, and bound without a version: the library uses them if they exist. Thread functions and dlsym
# were in libpthread.so.0 and libdl.so.2 until 2.34. Newer systems still have these files, as stubs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup old-glibc

[ "$(uname -m)" = x86_64 ] || die "this is for x86-64"
preload_library
ARCHIVE=$(dirname "$HEAPWRIGHT_SO")/libheapwright.a
[ -f "$ARCHIVE" ] || die "no archive beside $HEAPWRIGHT_SO"
BASE=GLIBC_2.2.5 # the first glibc of x86-64

# needed LIBRARY: prints the name, the version and the binding of each symbol that a library needs of glibc.
needed() { objdump -T "$1" | sed -nE 's/^[0-9a-f]+ .(.).* \*UND\*\t[0-9a-f]+ +\(?(GLIBC_[0-9.]+)\)? +(\w+)$/\3 \2 \1/p'; }
is_old() { [ "$(printf '%s\n' "${1#GLIBC_}" 2.17 | sort -V | tail -n 1)" = 2.17 ]; }

# The files of glibc 2.17 that have the symbols: FILE VERSION NAME.
needed "$HEAPWRIGHT_SO" | while read -r name version binding; do
    case $name in
        # glibc before 2.34 has these in a library of their own.
        pthread_*) echo "libpthread.so.0 $BASE $name" ;;
        dlsym | dlerror) echo "libdl.so.2 $BASE $name" ;;
        *) if is_old "$version"; then echo "libc.so.6 $version $name"; else [ "$binding" = w ] || die "$name needs $version"; fi ;;
    esac
done >"$SCRATCH/symbols"
grep -q __register_atfork "$SCRATCH/symbols" || echo "libc.so.6 GLIBC_2.3.2 __register_atfork" >>"$SCRATCH/symbols"

mkdir "$SCRATCH/stubs"
stubs=()
for file in libc.so.6 libpthread.so.0 libdl.so.2; do
    awk -v file=$file '$1 == file { printf "void %s(void) {}\n", $3 }' "$SCRATCH/symbols" >"$SCRATCH/stub.c"
    for version in $(awk -v file=$file '$1 == file { print $2 }' "$SCRATCH/symbols" | sort -Vu); do
        echo "$version {"
        awk -v file=$file -v version=$version '$1 == file && $2 == version { print "  " $3 ";" }' "$SCRATCH/symbols"
        echo "};"
    done >"$SCRATCH/stub.map"
    cc -shared -w -fno-builtin -nostdlib -Wl,-soname,$file -Wl,--version-script="$SCRATCH/stub.map" -o "$SCRATCH/stubs/$file" "$SCRATCH/stub.c"
    stubs+=("$SCRATCH/stubs/$file")
done

{ echo "{ global:"; objdump -T "$HEAPWRIGHT_SO" | awk '$4 != "*UND*" && NF >= 6 && $4 ~ /^\./ { print "  " $NF ";" }'; echo "local: *; };"; } >"$SCRATCH/exports"
OLD=$SCRATCH/libheapwright.so
# (The flags are those of crates/heapwright-malloc/link.rs.)
cc -shared -nodefaultlibs -o "$OLD" -Wl,-soname,libheapwright.so -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,--gc-sections \
    -Wl,--version-script="$SCRATCH/exports" -Wl,-T,crates/heapwright-malloc/code_order.ld \
    -Wl,--whole-archive "$ARCHIVE" -Wl,--no-whole-archive -Wl,--no-as-needed "${stubs[@]}" -l:libc_nonshared.a -lgcc
newest=$(needed "$OLD" | awk '{ print $2 }' | sort -Vu | tail -n 1)
is_old "$newest" || die "it needs $newest"
diff <(objdump -T "$HEAPWRIGHT_SO" | awk '$4 ~ /^\./ { print $NF }' | sort) <(objdump -T "$OLD" | awk '$4 ~ /^\./ { print $NF }' | sort) ||
    die "it exports something else"
say "ok   needs glibc ${newest#GLIBC_} at most"

failures=0
# answers NAME COMMAND...: the command prints the same as without options, and the library answers.
answers() {
    local name=$1 options code
    shift
    for options in mode=fast mode=debug mode=hardened cache=shared:2 cache=percpu; do
        code=0
        HEAPWRIGHT=$options timeout 60 "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null || code=$?
        if [ $code -eq 0 ] && [ "$(cat "$SCRATCH/out")" = "$WANTED" ] && [ ! -s "$SCRATCH/err" ]; then say "ok   $name, $options"; continue; fi
        say "FAIL $name, $options (status $code)"
        tail -n 5 "$SCRATCH/err" | sed 's/^/     /'
        failures=$((failures + 1))
    done
    [[ $(HEAPWRIGHT=stats=exit "$@" 2>&1 >/dev/null) == *'live blocks'* ]] || die "$name: the library does not answer"
}
WORK='my %h; push @{$h{$_ % 97}}, "x" x ($_ % 300) for 1 .. 20000; my $n = 0; for my $l (values %h) { $n += length for @$l } print "$n\n";'
WANTED=$(perl -e "$WORK")
answers "this system's glibc, perl" env LD_PRELOAD="$OLD" perl -e "$WORK"

AT=$CARGO_TARGET_DIR/old-glibc
fetch_bullseye() { # (The archive's lists of releases without support are out of date.)
    local package
    cd "$AT"
    apt_at "$AT" deb bullseye '' || apt_at "$AT" deb bullseye '' archive.debian.org/debian -o Acquire::Check-Valid-Until=false
    apt-get "${APT[@]}" download libc6 libc6-dev libgcc-s1 libcrypt1 perl-base
    for package in ./*.deb; do dpkg-deb -x "$package" root; done
    rm -rf lists ./*.deb
}
fetched "$AT" fetch_bullseye || die "cannot fetch Debian 11's C library"
FILES=$AT/root/lib/x86_64-linux-gnu
[[ $("$FILES"/ld-2.31.so --library-path "$FILES" "$FILES/libc.so.6") == *'version 2.31'* ]] || die "this is not glibc 2.31"
ON_OLD=("$FILES/ld-2.31.so" --library-path "$FILES" --preload "$OLD" "$AT/root/usr/bin/perl" -e "$WORK")
answers "glibc 2.31, perl" "${ON_OLD[@]}"
in_root() { find -L "$1" -name "$2" ! -path '*/libx32/*' ! -path '*/lib32/*' -print -quit; }
# programs_on ROOT: the tests' programs, compiled for the glibc there.
programs_on() {
    local root=$1 program files loader version part
    [ -n "$(in_root "$root" libgcc_s.so.1)" ] || die "no libgcc_s.so.1 in $root: threads cannot end there"
    loader=$(in_root "$root" ld-linux-x86-64.so.2)
    files=$(dirname "$(in_root "$root" libc.so.6)")
    version=$("$loader" --library-path "$files" "$files/libc.so.6" | sed -n '1s/.*version \([0-9.]*[0-9]\).*/\1/p')
    # (The kernel's headers, which the root lacks, are this system's.)
    local headers link=()
    headers=$(dirname "$(in_root "$root" gnu-versions.h)")
    for part in crt1.o crti.o libpthread.so.0 libdl.so.2 libc.so.6 libc_nonshared.a crtn.o; do link+=("$(in_root "$root" $part)"); done
    WANTED=
    for program in malloc_basic calloc_zero alignment_sweep free_errno thread_storm thread_keys thread_detached fork_memory fork_storm signals; do
        cc -std=gnu11 -O1 -w -fno-builtin -fno-pie -no-pie -fno-stack-protector -isystem "$headers/x86_64-linux-gnu" -isystem "$headers" \
            -Iinclude -nostdlib -o "$SCRATCH/$program" "crates/heapwright-malloc/tests/programs/$program.c" \
            "${link[@]:0:2}" -Wl,-rpath-link,"$files" "${link[@]:2}" -lgcc ||
            die "$program does not compile for glibc $version"
        answers "glibc $version, $program" env LD_PRELOAD="$OLD" "$loader" --library-path "$files" "$SCRATCH/$program"
    done
}
programs_on "$AT/root"
for root in ${HEAPWRIGHT_GLIBC_ROOTS:-}; do programs_on "$root"; done
# This glibc registers no area for restartable sequences. The library does, if the kernel has them.
if [[ $(LD_PRELOAD=$OLD HEAPWRIGHT=cache=percpu,stats=exit perl -e "$WORK" 2>&1) =~ rseq\ commits\ +[1-9] ]]; then
    [[ $(HEAPWRIGHT=cache=percpu,stats=exit "${ON_OLD[@]}" 2>&1) =~ rseq\ commits\ +[1-9] ]] || { say "FAIL no sequences on glibc 2.31"; failures=$((failures + 1)); }
fi
[ $failures -eq 0 ] || die "$failures rows failed"
[ $# -eq 0 ] || cp "$OLD" "$1"
say "all rows hold"
