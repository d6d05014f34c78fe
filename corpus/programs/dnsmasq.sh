# ways: more
# needs: dnsmasq-base python3
for i in $(seq 500); do echo "10.1.$((i / 250)).$((i % 250)) d$i"; done >hosts
$CHECK dnsmasq -k -u root -p "$(port 2)" -a 127.0.0.1 -z -R -h -H "$PWD/hosts" -x "$PWD/d.pid" --log-facility="$PWD/d.log" & server=$!
until_there "$(port 2)"; asked "$(port 2)" d3 d400 none
kill "$(cat d.pid)"; wait "$server"
