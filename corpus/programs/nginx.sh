# ways: check
# needs: nginx curl
chmod 755 .; seq 20000 >i.html
printf 'daemon off; worker_processes 2; pid n.pid; error_log e.log; events {} http { access_log a.log; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; gzip on; gzip_types *; server { listen unix:n.sock; root .; location /x { rewrite ^/x(.*)$ /i.html?$1 last; } } }' >n.conf
$CHECK nginx -p "$PWD" -c n.conf & server=$!
for _ in $(seq 200); do [ -S n.sock ] && [ -s n.pid ] && break; sleep 0.1; done
for page in i.html x1 none 'i.html?a=b'; do curl -s --compressed --unix-socket n.sock "http://x/$page" | cksum; done
kill -QUIT "$(cat n.pid)"; wait $server
