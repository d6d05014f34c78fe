# ways: more
# needs: mosquitto mosquitto-clients
printf 'listener %s 127.0.0.1\nallow_anonymous true\npid_file %s/m.pid\nuser root\nlog_dest none\n' "$(port 5)" "$PWD" >m.conf
$CHECK mosquitto -c m.conf & server=$!
until_there "$(port 5)"; $CHECK mosquitto_sub -p "$(port 5)" -t 'a/#' -C 3 >got & reader=$!
sleep 2; for i in 1 2 3; do $CHECK mosquitto_pub -p "$(port 5)" -t a/b -q 1 -m "message $i"; done
wait "$reader"; sort got; kill "$(cat m.pid)"; wait "$server"
