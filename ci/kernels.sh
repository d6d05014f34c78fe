#!/usr/bin/env bash
# Kernels and sandboxes that lack what the library uses: each of its system calls that may be refused is answered, by a seccomp
# filter (ci/kernels.c), with ENOSYS as an old kernel does, with EPERM as containers do, and with EINVAL as gVisor does; in each
# mode and cache model, and with the libraries that check bounds. A program of threads must end as it does without the library,
# and the library may say one line at most. A row that fails without the library, too, proves nothing (`skip`).
#
# HEAPWRIGHT_SLICE takes a sixth of the rows.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command_or_package cc gcc
packages util-linux
preload_library
hardened_library
check_library
cc -O1 -Wall -Wextra -Werror -o "$SCRATCH/kernels" ci/kernels.c
cc -O2 -pthread -o "$SCRATCH/limits" ci/limits.c

# madvise's advices by number: DONTNEED, HUGEPAGE, NOHUGEPAGE, DONTDUMP, COLLAPSE, POPULATE_WRITE, GUARD_INSTALL, GUARD_REMOVE.
# What a kernel of a sandbox lacks (gVisor), together.
TOGETHER=rseq+membarrier+mincore+mseal+madvise:14+madvise:15+madvise:16+madvise:23+madvise:25+madvise:102
CALLS=(rseq membarrier mincore madvise madvise:4 madvise:14 madvise:15 madvise:16 madvise:23 madvise:102
    mremap mseal getrandom sysinfo prctl prlimit64 sched_getaffinity sched_yield statfs fallocate readlink getcwd sigaltstack ppoll
    "$TOGETHER")
# With libheapwright.so, unless another library is named.
MODES=(mode=fast mode=debug,guard=all mode=debug,guard=never mode=hardened:full cache=shared:2 cache=percpu hardened check)

failures=0 held=0 number=0
# runs OUT OPTIONS PRELOAD CALL ERROR WORDS...: the program's status; what it says is in OUT and OUT.err.
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
# The filter must be what answers, or the rows prove nothing.
if "$SCRATCH/kernels" sched_getaffinity EPERM taskset -p $$ >/dev/null 2>&1; then say "FAIL the filter did not take effect"; failures=$((failures + 1)); fi
[ $failures -eq 0 ] || die "$failures rows failed"
[ $held -gt 0 ] || die "no row could be tried: no filter can be installed here"
say "$held rows hold"
