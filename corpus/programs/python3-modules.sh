# ways: leaks
# main: $PYTHON
$CHECK "$PYTHON" -S "$ROOT/bench/programs/objects.py"
$CHECK "$PYTHON" -c 'import json, re, threading, decimal
t = [threading.Thread(target=lambda: json.dumps(list(range(1000)))) for _ in range(4)]
[x.start() for x in t]; [x.join() for x in t]
print(len(re.findall("a+", "baab" * 99)), decimal.Decimal(1) / 7)'
$CHECK "$PYTHON" -c 'import sqlite3
c = sqlite3.connect(":memory:"); c.execute("create table t (a, b)")
c.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(999)))
print(c.execute("select count(*), max(b) from t").fetchall())'
