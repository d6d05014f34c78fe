#!/usr/bin/env bash
# Programs under the preload where the machine is tight or strange: limits on
# address space, data, locked memory, files and stack, other address layouts,
# no overcommit, under valgrind, with hostile environments and closed streams;
# and a core file that stays small.
#
# A row is: run a command under the preload and expect a status (0 unless said).
# Each row is first run without the preload: where that fails too, the row says
# so and proves nothing (`skip`).
#
#   ci/limits.sh           all of this
#   ci/limits.sh kernels   kernels and sandboxes that lack system calls of the library. A seccomp
#                          filter (ci/kernels.c) answers each call that may be refused with ENOSYS,
#                          as an old kernel does, with EPERM, as containers do, and with EINVAL, as
#                          gVisor does: in each mode and cache model, and with the libraries that
#                          check bounds. A program of threads must end as it does without the
#                          library, and the library may write at most one line. HEAPWRIGHT_SLICE
#                          takes a sixth of the rows
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

kernels() {
    command_or_package cc gcc
    packages util-linux
    preload_library
    hardened_library
    check_library
    cc -O1 -Wall -Wextra -Werror -o "$SCRATCH/kernels" ci/kernels.c
    cc -O2 -pthread -o "$SCRATCH/limits" ci/limits.c

    # madvise's advices by number: DONTNEED, HUGEPAGE, NOHUGEPAGE, DONTDUMP, COLLAPSE, POPULATE_WRITE, GUARD_INSTALL, GUARD_REMOVE.
    # The calls that a sandbox's kernel (gVisor) lacks, all together.
    TOGETHER=rseq+membarrier+mincore+mseal+madvise:14+madvise:15+madvise:16+madvise:23+madvise:25+madvise:102
    CALLS=(rseq membarrier mincore madvise madvise:4 madvise:14 madvise:15 madvise:16 madvise:23 madvise:102
        mremap mseal getrandom sysinfo prctl prlimit64 sched_getaffinity sched_yield statfs fallocate readlink getcwd sigaltstack ppoll
        "$TOGETHER")
    # With libheapwright.so, unless another library is named.
    MODES=(mode=fast mode=debug,guard=all mode=debug,guard=never mode=hardened:full cache=shared:2 cache=percpu hardened check)

    failures=0 held=0 number=0
    # runs OUT OPTIONS PRELOAD CALL ERROR WORDS...: the program's status, with its output in OUT and
    # OUT.err.
    runs() {
        local out=$1 options=$2 preload=$3 call=$4 error=$5 status=0
        shift 5
        timeout 60 "$SCRATCH/kernels" "$call" "$error" env HEAPWRIGHT="$options" ${preload:+LD_PRELOAD="$preload"} \
            "$SCRATCH/limits" "$@" >"$out" 2>"$out.err" </dev/null || status=$?
        return $status
    }
    for call in "${CALLS[@]}"; do
        for error in ENOSYS EPERM EINVAL; do
            plain=
            for mode in "${MODES[@]}"; do
                number=$((number + 1))
                in_slice $number || continue
                if [ -z "$plain" ]; then
                    plain=ok
                    runs "$SCRATCH/plain" "" "" $call $error work || plain=fails
                fi
                if [ $plain = fails ]; then
                    say "skip $call: $error, $mode: fails without the library too"
                    continue
                fi
                status=0 library=$HEAPWRIGHT_SO options=$mode
                case $mode in
                    hardened) library=$HEAPWRIGHT_HARDENED_SO options= ;;
                    check) library=$HEAPWRIGHT_CHECK_SO options= ;;
                esac
                runs "$SCRATCH/with" "$options" "$library" $call $error work || status=$?
                lines=$(grep -c '' "$SCRATCH/with.err" || true)
                if [ $status -eq 0 ] && cmp -s "$SCRATCH/plain" "$SCRATCH/with" && [ "$lines" -le 1 ]; then
                    held=$((held + 1))
                    if [ "$lines" -eq 1 ]; then say "ok   $call: $error, $mode: $(cat "$SCRATCH/with.err")"; fi
                else
                    say "FAIL $call: $error, $mode (status $status)"
                    head -5 "$SCRATCH/with.err" | sed 's/^/     /'
                    failures=$((failures + 1))
                fi
            done
        done
    done
    # The filter itself must answer, or the rows prove nothing.
    if "$SCRATCH/kernels" sched_getaffinity EPERM taskset -p $$ >/dev/null 2>&1; then say "FAIL the filter did not take effect"; failures=$((failures + 1)); fi
    [ $failures -eq 0 ] || die "$failures rows failed"
    [ $held -gt 0 ] || die "no row could be tried: no filter can be installed here"
    say "$held rows hold"
}
[ "${1:-}" != kernels ] || { kernels; exit; }

command_or_package valgrind valgrind
command_or_package perl perl
packages util-linux
preload_library
cc -O2 -pthread -o "$SCRATCH/limits" ci/limits.c
L=$SCRATCH/limits
PERL_WORK='my %h; push @{$h{$_ % 97}}, "x" x ($_ % 300) for 1 .. 20000; print scalar keys %h, "\n"'

failures=0
# row NAME COMMAND...: COMMAND is a shell text; $PRE puts the preload in front of
# the program it is about, so that the tools around it keep theirs.
row() {
    local name=$1 text=$2 code=0 plain=0
    PRE='' L=$L timeout 120 bash -c "$text" >"$SCRATCH/plain" 2>&1 </dev/null || plain=$?
    if [ $plain -ne 0 ]; then
        printf 'skip %-42s fails without the preload too (status %d)\n' "$name" $plain
        return
    fi
    PRE="env LD_PRELOAD=$HEAPWRIGHT_SO" L=$L timeout 120 bash -c "$text" >"$SCRATCH/with" 2>&1 </dev/null || code=$?
    if [ $code -eq 0 ]; then
        printf 'ok   %s\n' "$name"
    else
        printf 'FAIL %s (status %d): %s\n' "$name" $code "$text"
        tail -5 "$SCRATCH/with" | sed 's/^/     /'
        failures=$((failures + 1))
    fi
}

say "address space (ulimit -v), MiB"
for mib in 24 48 100 200 500 1000 4000 16000 100000; do
    row "ulimit -v ${mib} MiB: threads" "ulimit -v $((mib * 1024)); \$PRE \$L work"
done
for mib in 100 300 1000; do
    row "ulimit -v ${mib} MiB: used up and back" "ulimit -v $((mib * 1024)); \$PRE \$L exhaust"
done
row "ulimit -v 64 MiB: perl" "ulimit -v 65536; \$PRE perl -e '$PERL_WORK'"
row "ulimit -v 300 MiB: python3" "ulimit -v 300000; PYTHONMALLOC=malloc \$PRE python3 -c 'import json; print(len(json.dumps(list(range(100000)))))'"

# What fits: glibc fits 290 to 305 MB here, by how it is run; in debug mode guards and
# records are a quarter. And what was freed is there for others.
for options in mode=fast cache=shared:2 cache=percpu; do
    row "ulimit -v 300000, $options: 281 MB fit" "ulimit -v 300000; HEAPWRIGHT=$options \$PRE \$L fill 281"
done
row "ulimit -v 300000, mode=debug: 200 MB fit" "ulimit -v 300000; HEAPWRIGHT=mode=debug \$PRE \$L fill 200"
for options in mode=fast mode=debug cache=shared:2 cache=percpu; do
    row "ulimit -v 300000, $options: filled and freed" "ulimit -v 300000; HEAPWRIGHT=$options \$PRE \$L mixed"
    row "$options: what malloc(0), posix_memalign say" "HEAPWRIGHT=$options \$PRE \$L answers"
    row "$options: more than there is" "HEAPWRIGHT=$options \$PRE \$L more"
done
# Debug mode: half of what is above the first 12 MB, at least, and more where more is allowed.
last=0
for mb in 20 30 40 50 60 80 100 200 400; do
    fits=$( (ulimit -v $((mb * 1000)); HEAPWRIGHT=mode=debug LD_PRELOAD=$HEAPWRIGHT_SO "$L" share) 2>/dev/null) || fits=0
    if [ "${fits:-0}" -ge $(((mb - 12) / 2)) ] && [ "${fits:-0}" -gt $last ]; then
        say "ok   ulimit -v $mb MB, mode=debug: $fits MB fit"
    else
        say "FAIL ulimit -v $mb MB, mode=debug: ${fits:-no} MB fit, after $last MB"; failures=$((failures + 1))
    fi
    last=${fits:-0}
done

say "other limits"
row "ulimit -d 64 MiB (data): threads" "ulimit -d 65536; \$PRE \$L work"
row "ulimit -d 100 MiB (data): used up and back" "ulimit -d 102400; \$PRE \$L exhaust"
row "ulimit -s unlimited (bottom-up mappings)" "ulimit -s unlimited; \$PRE \$L work"
row "ulimit -n 4 (files)" "ulimit -n 4; \$PRE \$L work"
row "ulimit -l 0 (locked memory)" "ulimit -l 0; \$PRE \$L work"
row "ulimit -m 1024 (resident, ignored by Linux)" "ulimit -m 1024; \$PRE \$L work"
row "mlockall, present and future" "ulimit -l unlimited 2>/dev/null; \$PRE \$L lock"
# A program that limits itself has the window in its account already: what is
# in the window must still serve, and what it starts has a window that fits.
# (Its own further mappings, thread stacks say, are refused by the kernel.)
row "address space limited at run time" "\$PRE \$L self"
row "a shell that limits itself" "\$PRE bash -c 'ulimit -v 120000; x=\$(seq 20000); echo \${#x} | cat; for i in 1 2 3; do (echo \$i); done; perl -e \"print 1\"; \$L work'"

say "other address layouts"
row "setarch -R (no randomisation)" "setarch -R \$PRE \$L work"
row "setarch -L (legacy layout)" "setarch -L \$PRE \$L work"
row "setarch -X (readable means executable)" "setarch -X \$PRE \$L work"
row "setarch -Z (page zero mapped)" "setarch -Z \$PRE \$L work"

say "valgrind"
row "valgrind --tool=none: threads" "\$PRE valgrind -q --tool=none \$L work"
row "valgrind --tool=none: perl" "\$PRE valgrind -q --tool=none perl -e '$PERL_WORK'"

say "environments"
row "no environment but the preload" "env -i \$PRE \$L work"
row "glibc's own malloc settings" "MALLOC_CHECK_=3 MALLOC_PERTURB_=170 MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=0 GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.check=3:glibc.malloc.hugetlb=1 \$PRE \$L work"
row "a megabyte of environment" "export BIG=\$(head -c 100000 /dev/zero | tr '\\0' x); export B2=\$BIG B3=\$BIG B4=\$BIG B5=\$BIG; \$PRE \$L work"
row "standard streams closed" "\$PRE \$L work <&- 2>&-"
row "all streams closed" "\$PRE \$L work <&- >&- 2>&- || [ \$? -eq 1 ] || [ \$? -eq 0 ]"
row "immediate binding (LD_BIND_NOW)" "LD_BIND_NOW=1 \$PRE \$L work"
row "the preload named twice" "LD_PRELOAD_TWICE=1 \$PRE \$PRE \$L work"

# Options that mean nothing: the program runs on, with one line for each.
for options in 'foo=bar' 'purge=never-ever' '=,,=' 'window=99999999999999t' 'window=1' 'mode=nonsense' "$(head -c 5000 /dev/zero | tr '\0' ,)"; do
    row "HEAPWRIGHT='${options:0:24}' runs on" "HEAPWRIGHT='$options' \$PRE \$L work"
done
lines=$(HEAPWRIGHT='foo=bar' LD_PRELOAD=$HEAPWRIGHT_SO "$L" work 2>&1 >/dev/null | wc -l)
if [ "$lines" -eq 1 ]; then say "ok   an unknown option is one line on stderr"; else say "FAIL an unknown option is $lines lines on stderr, not 1"; failures=$((failures + 1)); fi
for window in 16m 64m 1g 64g 100t; do
    row "HEAPWRIGHT=window=$window: threads" "HEAPWRIGHT=window=$window \$PRE \$L work"
done

say "core file"
pattern=$(cat /proc/sys/kernel/core_pattern)
case $pattern in
    core | core.%p)
        core_bytes() { # PRELOAD-or-empty: apparent size of the core of a crash
            mkdir -p "$SCRATCH/core" && cd "$SCRATCH/core" && rm -f core*
            (ulimit -c unlimited && LD_PRELOAD=$1 "$L" crash) >/dev/null 2>&1 || true
            stat -c %s core* 2>/dev/null | head -1
        }
        without=$(core_bytes ''); with=$(core_bytes "$HEAPWRIGHT_SO")
        if [ -z "$without" ]; then
            say "skip core files are not written here"
        elif [ -n "$with" ] && [ "$with" -le $((without + 16 * 1024 * 1024)) ]; then
            say "ok   core of $((with / 1024)) KiB; without the preload $((without / 1024)) KiB"
        else
            say "FAIL core of ${with:-no} bytes; without the preload $without"; failures=$((failures + 1))
        fi
        ;;
    *) say "skip core files go to '$pattern'" ;;
esac
cd "$ROOT"

say "no overcommit (vm.overcommit_memory=2)"
# The setting is the whole machine's: a lock against a second run, a ratio that
# leaves what is in use and gigabytes more, seconds only, and back at any exit.
OVER=/proc/sys/vm/overcommit_memory RATIO=/proc/sys/vm/overcommit_ratio
exec 9>"${TMPDIR:-/tmp}/heapwright-overcommit.lock"
commit_room_kib() { awk '/^MemTotal/ { t = $2 } /^SwapTotal/ { s = $2 } /^Committed_AS/ { c = $2 } END { print int(t * 0.95 + s - c) }' /proc/meminfo; }
if ! [ -w $OVER ] || ! [ -w $RATIO ]; then
    say "skip not permitted here"
elif ! flock -w 60 9; then
    say "skip another run has the machine's setting"
elif [ "$(commit_room_kib)" -lt $((3 * 1024 * 1024)) ]; then
    say "skip too much is committed on this machine"
else
    old_over=$(cat $OVER) old_ratio=$(cat $RATIO)
    restore() { echo "$old_ratio" >$RATIO 2>/dev/null || true; echo "$old_over" >$OVER 2>/dev/null || true; tidy; }
    trap restore EXIT
    trap 'exit 130' INT TERM HUP
    if echo 95 >$RATIO 2>/dev/null && echo 2 >$OVER 2>/dev/null; then
        row "threads" "\$PRE \$L work"
        row "perl" "\$PRE perl -e '$PERL_WORK'"
        row "fork (a shell with children)" "\$PRE bash -c 'for i in 1 2 3; do (seq 1000 | sort -n | tail -1); done'"
        row "with ulimit -v 500 MiB: used up and back" "ulimit -v 512000; \$PRE \$L exhaust"
        row "more than there is" "\$PRE \$L more"
        echo 1 >$OVER
        row "overcommit without a question: more than there is" "\$PRE \$L more"
        row "the same, mode=debug" "HEAPWRIGHT=mode=debug \$PRE \$L more"
    else
        say "skip not permitted here"
    fi
    restore
    trap tidy EXIT
    mkdir -p "$SCRATCH"
fi

[ $failures -eq 0 ] || { say "FAIL: $failures rows"; exit 1; }
say "all rows hold"
