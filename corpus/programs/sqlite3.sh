# ways: preload
# needs: sqlite3:sqlite3
# main: sqlite3
sqlite3 :memory: <"$ROOT/bench/programs/query.sql"
sqlite3 file.db <<'SQL'
PRAGMA journal_mode=WAL;
CREATE TABLE t(id INTEGER PRIMARY KEY, blob BLOB, text TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 20000)
INSERT INTO t SELECT i, zeroblob(i % 700), printf('%0*d', 1 + i % 90, i) FROM n;
CREATE INDEX x ON t(text); DELETE FROM t WHERE id % 7 = 0; VACUUM; PRAGMA integrity_check;
SELECT count(*), sum(length(blob)), sum(length(text)) FROM t;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3000)
SELECT length(json_group_array(json_object('a', i, 'b', printf('%d', i * i)))) FROM n;
SELECT * FROM nowhere;
SQL
