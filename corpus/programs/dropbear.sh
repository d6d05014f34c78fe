# ways: more
# needs: dropbear-bin
$CHECK dropbearkey -t ed25519 -f key | grep -c ssh-ed25519; $CHECK dropbearkey -t rsa -s 1024 -f rsa | grep -c ssh-rsa
$CHECK dropbear -F -E -r key -p "127.0.0.1:$(port 12)" -P "$PWD/d.pid" 2>d.log & server=$!
until_there "$(port 12)"; $CHECK dbclient -y -y -p "$(port 12)" nobody@127.0.0.1 true 2>&1 </dev/null | sed -n 's/.*\(closed\|No auth\).*/refused/p' | head -1
kill "$(cat d.pid)"; wait "$server"
