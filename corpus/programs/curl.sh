# ways: leaks
# needs: curl python3
seq 20000 >page
(exec python3 -m http.server --bind 127.0.0.1 "$PORT") >/dev/null 2>&1 & server=$!
until_there "$PORT"
$CHECK curl -s -o got "http://127.0.0.1:$PORT/page" -o second "http://127.0.0.1:$PORT/none"; kill "$server"; true
