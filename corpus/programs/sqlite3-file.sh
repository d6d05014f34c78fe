# ways: check leaks
# needs: sqlite3:sqlite3
$CHECK sqlite3 x.db "create table t(a integer primary key, b text);
    with recursive c(i) as (select 1 union all select i + 1 from c where i < 10000) insert into t select i, hex(i * 7919) from c;
    create index x on t(b); select count(*), max(b) from t where b like '3%'; select length(group_concat(a)) from t;
    select json_group_array(a) from (select a from t limit 10); vacuum;"
