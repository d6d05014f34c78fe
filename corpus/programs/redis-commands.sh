# ways: leaks
# needs: redis-server redis-tools
$CHECK redis-server --port $PORT --save '' --appendonly no >/dev/null & server=$!
for _ in $(seq 200); do redis-cli -p $PORT ping 2>/dev/null | grep -q PONG && break; sleep 0.2; done
redis-benchmark -p $PORT -n 2000 -c 8 -q -r 500 -t set,get,lpush,lrange_100,hset,zadd >/dev/null
redis-cli -p $PORT flushall async; redis-cli -p $PORT shutdown nosave
wait $server
