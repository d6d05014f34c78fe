-- An in-memory database: inserts, indices, joins, text, updates. @ROWS@ becomes
-- a number.
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, city INTEGER, note TEXT);
CREATE TABLE visit(person INTEGER, day INTEGER, place TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @ROWS@)
INSERT INTO person SELECT i, 'name-' || (i * 7919 % 100003), i % 97, substr('abcdefghijklmnopqrstuvwxyz', 1 + i % 20) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2 * @ROWS@)
INSERT INTO visit SELECT 1 + i * 31 % @ROWS@, i % 365, 'place-' || (i % 1009) FROM n;
CREATE INDEX visit_person ON visit(person);
CREATE INDEX person_name ON person(name);
SELECT city, count(*), group_concat(DISTINCT substr(place, -2)) FROM person JOIN visit ON visit.person = person.id WHERE day < 30 GROUP BY city ORDER BY city LIMIT 3;
UPDATE person SET note = note || '-' || name WHERE id % 3 = 0;
DELETE FROM visit WHERE day % 5 = 0;
SELECT count(*), sum(length(note)), max(upper(name)) FROM person;
SELECT place, count(*) AS times FROM visit GROUP BY place ORDER BY times DESC, place LIMIT 3;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @ROWS@)
SELECT length(json_group_array(json_object('a', i, 'b', printf('%d', i * i)))) FROM n;
