# ways: more
# needs: unbound python3
printf 'server:\n interface: 127.0.0.1\n port: %s\n num-threads: 2\n do-daemonize: no\n chroot: ""\n username: ""\n directory: "%s"\n pidfile: "%s/u.pid"\n use-syslog: no\n logfile: "%s/u.log"\n local-zone: "shop." static\n' "$(port 1)" "$PWD" "$PWD" "$PWD" >u.conf
for i in $(seq 500); do printf ' local-data: "h%d.shop. A 10.0.%d.%d"\n' "$i" $((i / 250)) $((i % 250)); done >>u.conf
$CHECK unbound-checkconf u.conf | sed 's/in .*//'; $CHECK unbound -d -c u.conf & server=$!
until_there "$(port 1)"; asked "$(port 1)" h1.shop h77.shop h500.shop h501.shop
kill "$(cat u.pid)"; wait "$server"
