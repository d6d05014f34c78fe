#!/bin/sh
# redis.sh COMMANDS [REQUESTS]: one redis server gets a fixed list of commands through a socket. With REQUESTS (for the
# debug mode and `check`) it then gets so many of each command of redis-benchmark, 16 at a time. Then it shuts down.
#
# Without REQUESTS this script becomes the server (exec), so the measurements are the server's. The client runs beside it
# without the preload (in debug mode: with the library in fast mode). It only copies the prepared file into the socket.
# With REQUESTS the script waits for the server and the clients, so that the CPU time always includes all of them:
# `heapwright check` adopts leftover processes, and would count the clients where a plain run does not.
#
# Debian's redis is linked with jemalloc, which a run without a preload would measure as "glibc". So the script then
# preloads the C library itself, whose malloc then precedes jemalloc's.
#
# redis-benchmark writes random data to a separate database. Only the other database is shown.
commands=$1 requests=${2:-}
server=$$
# Short, because a socket's path may have only 107 bytes.
folder=$(mktemp -d "${TMPDIR:-/tmp}/hw-redis-XXXXXX")
socket=$folder/socket

(
    # `heapwright check` reports each program that is started without its library, so a client keeps
    # the library there, in another mode.
    case ${HEAPWRIGHT:-} in
    *mode=debug*) export HEAPWRIGHT=mode=fast ;;
    *) unset LD_PRELOAD HEAPWRIGHT ;;
    esac
    unset GLIBC_TUNABLES MALLOC_CHECK_
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
    # The keys, and the lengths of their values.
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
# A client that still waits for the socket then ends.
rm -rf "$folder"
wait
exit $status
