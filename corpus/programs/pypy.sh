# ways: more
# needs: pypy3
$CHECK pypy3 -c 'import threading, json, re, zlib, ctypes
out = []
def work(n): out.append(sum(len(str(i * n)) for i in range(20000)))
t = [threading.Thread(target=work, args=(n,)) for n in (3, 5, 7)]
[x.start() for x in t]; [x.join() for x in t]
print(sorted(out), len(zlib.compress(json.dumps(list(range(5000))).encode())), re.sub("(a)(b)", r"\2\1", "ab" * 9)); p = ctypes.create_string_buffer(100); print(len(p))'
