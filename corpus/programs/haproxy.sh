# ways: more
# needs: haproxy curl python3
seq 3000 >page; (cd . && exec python3 -m http.server -b 127.0.0.1 "$(port 4)") >/dev/null 2>&1 & origin=$!
printf 'global\n nbthread 4\n pidfile h.pid\ndefaults\n mode http\n timeout connect 9s\n timeout client 9s\n timeout server 9s\n compression algo gzip\n compression type text/plain application/octet-stream\nfrontend f\n bind 127.0.0.1:%s\n http-request set-header X-A %%[src]\n acl no path_beg /no\n http-request deny if no\n default_backend b\nbackend b\n server s 127.0.0.1:%s\n' "$(port 3)" "$(port 4)" >h.conf
until_there "$(port 4)"; $CHECK haproxy -db -f h.conf & server=$!
until_there "$(port 3)"; for p in page no/x page?a=1; do curl -s --compressed "http://127.0.0.1:$(port 3)/$p" | cksum; done
kill "$server"; wait "$server"; kill "$origin"; true
