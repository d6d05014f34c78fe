# ways: more
# needs: stunnel4 socat openssl
openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=x 2>/dev/null; cat k c >kc
printf 'foreground = yes\npid = %s/t.pid\n[s]\naccept = 127.0.0.1:%s\nexec = /bin/cat\nexecArgs = cat\ncert = kc\n' "$PWD" "$(port 7)" >t.conf
$CHECK stunnel4 t.conf >t.log 2>&1 & server=$!
until_there "$(port 7)"; for i in 1 2; do (seq $((i * 100)); sleep 1) | timeout 9 socat -t 2 - "OPENSSL:127.0.0.1:$(port 7),verify=0" | cksum; done
kill "$(cat t.pid)"; wait "$server"
