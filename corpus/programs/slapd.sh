# ways: more
# needs: slapd python3
mkdir db && printf 'include /etc/ldap/schema/core.schema\npidfile %s/s.pid\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\ndatabase mdb\nsuffix "dc=x"\nrootdn "cn=a,dc=x"\nrootpw p\ndirectory %s/db\nmaxsize 10485760\nindex sn eq,sub\n' "$PWD" "$PWD" >s.conf
{ printf 'dn: dc=x\nobjectClass: dcObject\nobjectClass: organization\no: x\ndc: x\n\n'; for i in $(seq 100); do printf 'dn: cn=p%d,dc=x\nobjectClass: person\nsn: s%d\n\n' "$i" $((i % 7)); done; } >d.ldif
$CHECK slapadd -f s.conf -l d.ldif; $CHECK slapcat -f s.conf | grep -c '^dn'; $CHECK slaptest -f s.conf
$CHECK slapd -d 0 -f s.conf -h "ldap://127.0.0.1:$(port 6)" & server=$!
until_there "$(port 6)";     # An anonymous bind, and a search for a third of the entries.
python3 - "$(port 6)" <<'P'
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:
    s.settimeout(9)
    s.sendall(bytes.fromhex("300c020101600702010304008000"))
    print(s.recv(4096).hex())
    def wrap(tag, data): return bytes([tag, len(data)]) + data
    search = wrap(4, b"dc=x") + b"\x0a\x01\x02\x0a\x01\x00\x02\x01\x00\x02\x01\x00\x01\x01\x00" + wrap(0xA3, wrap(4, b"sn") + wrap(4, b"s3")) + b"\x30\x00"
    s.sendall(wrap(0x30, b"\x02\x01\x02" + wrap(0x63, search)))
    got = b""
    while b"\x65\x07\x0a\x01" not in got: got += s.recv(65536)
    print(len(got), got.count(b"cn=p"))
P
kill "$(cat s.pid)"; wait "$server"
