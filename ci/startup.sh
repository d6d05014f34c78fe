#!/usr/bin/env bash
# The cost of the preload for a program that does nothing. callgrind counts the instructions of
# /bin/true (at most 300,000 more, dynamic linking of the library included). Resident memory is
# taken when main returns (at most 120 KiB more, mean of 300 runs). Each library file may have 2.5
# MB.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

MORE_INSTRUCTIONS=300000
MORE_KIB=120
# The kernel maps the pages around one that is touched, up to a border of 64 KiB, and where
# that falls in a library is drawn anew at each start: one start has 100 KiB more than the
# next, and so have medians of a few. Means of many do not.
RUNS=300

command_or_package valgrind valgrind
command_or_package cc gcc
preload_library
hardened_library
check_library

# The program reads what is resident itself, where the kernel counts pages: `getrusage` and VmHWM leave out what each
# CPU has not yet added to the sum, up to 128 KiB, and so depend on whether the process changed its CPU.
cat >"$SCRATCH/resident.c" <<'C'
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char text[4096];

int main(void)
{
    int rollup = open("/proc/self/smaps_rollup", O_RDONLY);
    if (rollup < 0 || read(rollup, text, sizeof text - 1) <= 0)
        return 1;
    const char *line = strstr(text, "\nRss:");
    const char *end = line ? strchr(line + 1, '\n') : 0;
    return !end || write(1, line + 1, end - line) < 0;
}
C
cc -O2 -Wall -Wextra -o "$SCRATCH/resident" "$SCRATCH/resident.c"

instructions() { # PRELOAD-or-empty
    LD_PRELOAD=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null /bin/true 2>&1 |
        sed -n 's/^==.*Collected *: *\([0-9]*\).*/\1/p'
}

# A library that was just written lies in the page cache in large pieces, of which a fault maps more at once:
# 100 KiB and more that an installed one, which is read from its file, does not cost. So it is a copy of our own
# (what another process maps stays in the cache), written past the cache where the file system can, and put out of
# it. A kernel may keep pages all the same; what that adds is never the library's, so the best of three copies counts.
read_anew() { # COPY
    dd if="$HEAPWRIGHT_SO" of="$1" bs=1M oflag=direct status=none 2>/dev/null || cp "$HEAPWRIGHT_SO" "$1"
    sync "$1"
    dd if="$1" iflag=nocache count=0 status=none
}
mean() { awk '{ sum += $2 } END { printf "%d\n", sum / NR }' "$1"; }

rss_more=
for copy in 1 2 3; do
    own=$SCRATCH/startup.$copy.so
    read_anew "$own"
    for _ in $(seq $RUNS); do
        "$SCRATCH/resident" >>"$SCRATCH/rss.$copy.without" && LD_PRELOAD=$own "$SCRATCH/resident" >>"$SCRATCH/rss.$copy.with" ||
            die "the program that says what is resident failed"
    done
    base=$(mean "$SCRATCH/rss.$copy.without"); peak=$(mean "$SCRATCH/rss.$copy.with")
    if [ -z "$rss_more" ] || [ $((peak - base)) -lt "$rss_more" ]; then
        rss_more=$((peak - base)); rss_without=$base; rss_with=$peak
    fi
    [ "$rss_more" -gt $MORE_KIB ] || break
done

without=$(instructions ""); with=$(instructions "$HEAPWRIGHT_SO")
[ -n "$without" ] && [ -n "$with" ] || die "callgrind printed no count"

status=0
row() { # WHAT WITHOUT WITH LIMIT
    local more=$(($3 - $2)) verdict=ok
    [ "$more" -le "$4" ] || { verdict=FAIL; status=1; }
    printf '%-4s %-28s without %9d   with %9d   more %8d   limit %8d\n' $verdict "$1" "$2" "$3" $more "$4"
}
row instructions "$without" "$with" $MORE_INSTRUCTIONS
row "resident, KiB" "$rss_without" "$rss_with" $MORE_KIB
for library in "$HEAPWRIGHT_SO" "$HEAPWRIGHT_HARDENED_SO" "$HEAPWRIGHT_CHECK_SO"; do
    name=${library##*/}
    row "${name%.so}, bytes" 0 "$(stat -L -c %s "$library")" 2500000
done
exit $status
