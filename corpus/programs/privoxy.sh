# ways: more
# needs: privoxy curl python3
seq 3000 >page; (exec python3 -m http.server -b 127.0.0.1 "$(port 11)") >/dev/null 2>&1 & origin=$!
printf 'listen-address 127.0.0.1:%s\nconfdir /etc/privoxy\nlogdir %s\nlogfile l\nfilterfile default.filter\nactionsfile default.action\naccept-intercepted-requests 1\n' "$(port 10)" "$PWD" >p.conf
until_there "$(port 11)"; $CHECK privoxy --no-daemon --pidfile "$PWD/p.pid" p.conf & server=$!
until_there "$(port 10)"; for p in page page none; do curl -s -x "http://127.0.0.1:$(port 10)" "http://127.0.0.1:$(port 11)/$p" | wc -l; done
kill "$(cat p.pid)"; wait "$server"; kill "$origin"; true
