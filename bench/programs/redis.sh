#!/bin/sh
# redis.sh COMMANDS [REQUESTS]: one redis server, loaded through a socket with a
# fixed list of commands, then (for the debug mode) with so many of
# redis-benchmark's with 16 in flight, and shut down.
#
# Without REQUESTS this script becomes the server (exec), so that what is measured is the
# server: its wall time, its CPU time, its peak memory. The client runs beside it
# without the preload. The time includes the client's, which only copies the
# prepared file into the socket.
#
# With REQUESTS the script waits for the server and the clients instead, so that
# the CPU time is that of all of them, whatever runs it: `heapwright check` adopts
# what its program leaves behind, and would count the clients where a plain run
# does not.
#
# Debian's redis is linked with jemalloc. Without a preload that would be what
# the line "glibc" measures, so then the C library itself is preloaded: its
# malloc comes before jemalloc's, as any other preload's does.
#
# What redis-benchmark writes is random; it goes to a database of its own and
# only the other is shown.
commands=$1 requests=${2:-}
server=$$
# Short: a socket's path may have 107 bytes.
folder=$(mktemp -d "${TMPDIR:-/tmp}/hw-redis-XXXXXX")
socket=$folder/socket

(
    unset LD_PRELOAD HEAPWRIGHT GLIBC_TUNABLES MALLOC_CHECK_
    cli() { redis-cli -s "$socket" "$@"; }
    while [ ! -S "$socket" ]; do
        { kill -0 "$server" 2>/dev/null && [ -d "$folder" ]; } || exit 1
        sleep 0.005
    done
    cli --pipe <"$commands" | grep '^errors'
    [ -z "$requests" ] ||
        redis-benchmark -s "$socket" --dbnum 1 -q -P 16 -c 20 -n "$requests" -r 20000 -d 100 \
            -t set,get,incr,lpush,rpop,sadd,hset,spop,zadd,lrange_100,mset --csv | cut -d, -f1
    cli dbsize
    # Which keys there are, and how long their values.
    cli eval "
        local keys, sum = redis.call('KEYS', '*'), 0
        table.sort(keys)
        for _, key in ipairs(keys) do
            if redis.call('TYPE', key).ok == 'string' then sum = sum + redis.call('STRLEN', key) end
        end
        return redis.sha1hex(table.concat(keys, ' ')) .. ' ' .. sum" 0
    cli shutdown nosave || kill "$(cat "$folder/pid" 2>/dev/null || echo "$server")" 2>/dev/null
    rm -rf "$folder"
) &

export LD_PRELOAD="${LD_PRELOAD:-libc.so.6}"
set -- redis-server --port 0 --unixsocket "$socket" --daemonize no --save '' --appendonly no \
    --dir "$folder" --logfile "$folder/log" --loglevel warning \
    --jemalloc-bg-thread no --activedefrag no
[ -n "$requests" ] || exec "$@"
"$@" &
echo $! >"$folder/pid"
wait $!
status=$?
# A client that still waits for the socket sees that there will be none.
rm -rf "$folder"
wait
exit $status
