# ways: preload long
# needs: redis-server:redis-server
# main: redis-server
# Debian's redis is linked with jemalloc; the preload goes before it.
cli() { redis-cli -p "$PORT" "$@"; }
redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly yes --io-threads 2 --daemonize no >server.log 2>&1 &
server=$!
for _ in $(seq 100); do cli ping >/dev/null 2>&1 && break; sleep 0.1; done
for i in $(seq 20000); do echo "SET key:$i value-$((i * 7919))"; echo "RPUSH list:$((i % 100)) $i"; echo "HSET hash:$((i % 50)) f$i $i"; echo "ZADD zset $((i * 31 % 9973)) m$i"; done | cli --pipe | tail -1
redis-benchmark -h 127.0.0.1 -p "$PORT" -q -n 20000 -c 20 -P 4 -r 1000 -d 200 -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset --csv | cut -d, -f1
cli flushall async >/dev/null
for i in $(seq 5000); do echo "SET key:$i $(printf '%*s' $((i % 300)) x)"; echo "SADD set:$((i % 10)) $i"; done | cli --pipe | tail -1
cli dbsize; cli memory purge; cli bgsave; for _ in $(seq 100); do [ "$(cli info persistence | tr -d '\r' | sed -n 's/^rdb_bgsave_in_progress://p')" = 0 ] && break; sleep 0.1; done
cli info persistence | tr -d '\r' | grep -E 'rdb_last_bgsave_status|aof_last_write_status'
cli eval 'local t = {} for i = 1, 1000 do t[i] = redis.call("GET", "key:" .. i) end return #table.concat(t)' 0
cli bgrewriteaof; sleep 1; cli scard set:3; cli strlen key:299
cli shutdown nosave; wait "$server"; echo "server exit $?"
redis-check-rdb dump.rdb | grep -E 'OK|keys read|error' | sed 's/^\[[^]]*\] //'
grep -iE 'crash|bug|assert' server.log
true
