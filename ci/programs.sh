#!/usr/bin/env bash
# Real programs under the preload: the same output and the same exit status as
# without, side by side.
#
#   ci/programs.sh              all of them (of the long ones, half in a slice)
#   ci/programs.sh perl git     only these
#   ci/programs.sh -v perl      and show what they printed
#   ci/programs.sh --with mode=hardened perl
#                               with these options
#
# Each case is a function run by a bash that is itself under the preload, once
# with and once without, at the same time, each in an empty folder of its own.
# What they print on stdout and stderr and their exit statuses must be equal;
# times and folder names are blanked first. A case that needs a program which is
# not installed installs the Debian package.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CASES=(bash coreutils perl git gcc gxx sqlite3)
# The long ones: HEAPWRIGHT_SLICE takes half of them.
LONG=(node ruby redis cargo python3 python3_malloc)
for number in "${!LONG[@]}"; do
    ! in_half "$number" || CASES+=("${LONG[$number]}")
done

# --- the cases: run in an empty folder; $SIDE is with or without -------------

case_bash() {
    declare -A seen; words=()
    for i in $(seq 2000); do
        word="w$((i * 7919 % 997))"; words+=("$word"); seen[$word]=$((${seen[$word]:-0} + 1))
    done
    echo "${#words[@]} ${#seen[@]} ${words[*]:10:5}"
    (text=$(printf '%s,' "${words[@]}"); echo "${#text} ${text//w/v}" | cksum)
    while read -r line; do echo "$line" | tr a-z A-Z; done <<<"$(printf 'one\ntwo\n')"
    for i in 1 2 3; do (exit $i) & wait $! || echo "child $?"; done
    sh -c 'kill -TERM $$'; echo "signal $?"
    diff <(seq 100) <(seq 99); return 7
}

case_coreutils() {
    seq 300000 | awk '{ print ($1 * 7919) % 300007, "line " $1 }' >lines
    sort --parallel=4 -S 8M -k1,1n lines | cksum
    sort -u -k2 lines | tail -1
    mkdir many; split -l 3000 lines many/part.
    tar --sort=name --mtime=@0 -cf many.tar many && xz -T2 -k many.tar && xz -dc many.tar.xz | cmp - many.tar && gzip -k many.tar
    gzip -dc many.tar.gz | cksum
    find many -name 'part.a*' | sort | xargs -P3 -n5 wc -l | grep -v total | sort | cksum
    grep -c 'line [0-9]*7$' lines; sed -n 's/line \(1234[0-9]*\)$/\1/p' lines | sort | head -3
    ls /nowhere
}

case_perl() {
    perl "$ROOT/bench/programs/text.pl"
    perl -e '
        my %h = map { $_ => [1 .. $_ % 50] } 1 .. 20000;
        my $s = ""; $s .= join(",", @{ $h{$_} }) for sort { $a <=> $b } keys %h;
        print length $s, "\n";
        my @kids; for my $k (1 .. 4) {
            pipe my $r, my $w; my $pid = fork;
            if (!$pid) { my $x = join "", map { chr(97 + $_ % 26) x $k } 1 .. 50000; print $w length $x; exit $k }
            close $w; push @kids, [$pid, $r] }
        for (@kids) { my ($pid, $r) = @$_; my $n = <$r>; waitpid $pid, 0; print "$n ", $? >> 8, "\n" }
        my $big = "x" x 50_000_000; $big =~ s/x{1000}/y/g; print length $big, "\n";
        eval { die { code => 42 } }; print $@->{code}, "\n";
        local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; eval { my @a; push @a, "z" x ($_ % 500) for 1 .. 1e9 }; print $@;
        exit 3'
}

case_git() {
    export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=$PWD
    git init -q -b main repo && cd repo
    for i in $(seq 12); do
        for f in $(seq 15); do seq $((i * f)) $((i * f + 400)) >file$f; done
        git add -A && git commit -q -m "commit $i"
    done
    git branch side HEAD~4 && git checkout -q side && echo side >side && git add side && git commit -q -m side
    git checkout -q main && git merge -q -m merge side
    git log --stat --format='%H %s' | cksum; git rev-parse HEAD; git blame file3 | cksum
    git diff HEAD~3 | cksum; git grep -c 40 | cksum
    git repack -q -a -d -f --threads=2 && git gc -q --aggressive --prune=now
    git fsck --full --strict --no-progress && git count-objects -v | grep -v size
    git clone -q . ../clone && git -C ../clone rev-parse HEAD && git bundle create -q ../bundle main && git bundle verify -q ../bundle
    git archive HEAD | cksum; git show no-such-thing
}

case_gcc() {
    gcc -O2 -Wall -o rounds "$ROOT/bench/debug/rounds.c" && ./rounds 10000 | cut -d' ' -f1,2
    {
        echo 'int printf(const char *, ...);'
        for i in $(seq 150); do
            echo "static int f$i(int n) { int a[$((i % 13 + 2))] = {0}, t = $i; for (int k = 0; k < n; k++) {
                switch ((a[k % $((i % 13 + 2))] + k) % 5) { case 0: t += k; break; case 1: t ^= $i; break; default: a[k % 2] = t; } } return t; }"
        done
        echo 'int main(void) { long s = 0;'; for i in $(seq 150); do echo "s += f$i($i);"; done
        echo 'printf("%ld\n", s); return s & 127; }'
    } >big.c
    gcc -O2 -S big.c -o - | cksum
    gcc -O2 -flto big.c -o big && ./big; echo "exit $?"
    gcc -g -O1 -c big.c && objdump -d big.o | cksum && ar rcs libbig.a big.o && nm libbig.a | cksum
    echo 'int main(void) { return undeclared; }' >bad.c; gcc bad.c
}

case_gxx() {
    cat >stl.cc <<'CC'
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
struct alignas(64) Line { char bytes[64]; };
int main() {
    std::map<std::string, std::vector<int>> index;
    for (int i = 0; i < 50000; i++) index["key" + std::to_string(i * 7919 % 4999)].push_back(i);
    std::unordered_map<int, std::shared_ptr<std::string>> table;
    for (auto &[key, list] : index) table[list.front()] = std::make_shared<std::string>(key);
    long total = 0;
    for (auto &[n, text] : table) total += n + text->size();
    std::vector<std::future<long>> work;
    for (int t = 0; t < 4; t++)
        work.push_back(std::async(std::launch::async, [t] {
            std::vector<std::unique_ptr<Line>> lines; long sum = 0;
            for (int i = 0; i < 20000; i++) {
                lines.push_back(std::make_unique<Line>());
                sum += reinterpret_cast<unsigned long>(lines.back().get()) % 64 + t;
                if (i % 3 == 0) lines[i / 2].reset();
            }
            return sum;
        }));
    for (auto &w : work) total += w.get();
    std::regex words("([a-z]+)([0-9]+)");
    std::smatch match; std::string text = "abc123 def456";
    while (std::regex_search(text, match, words)) { total += std::stol(match[2]); text = match.suffix(); }
    try { std::vector<long>().at(3); } catch (const std::out_of_range &) { total++; }
    try { volatile std::size_t huge = ~std::size_t(0) / 2; delete[] new char[huge]; } catch (const std::bad_alloc &) { total++; }
    std::ostringstream out; out << total << ' ' << index.size();
    std::cout << out.str() << '\n';
}
CC
    g++ -std=c++20 -O2 -pthread stl.cc -o stl && ./stl
    g++ -std=c++20 -O1 -S stl.cc -o - | cksum
}

case_sqlite3() {
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
}

case_node() {
    cat >main.js <<'JS'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync } = require('child_process'), zlib = require('zlib'), crypto = require('crypto');
if (!isMainThread) {
    const rows = []; for (let i = 0; i < 30000; i++) rows.push({ i, s: 'row' + (i * workerData % 1009) });
    parentPort.postMessage(JSON.stringify(rows).length);
} else {
    const buffers = []; let sum = 0;
    for (let i = 0; i < 3000; i++) { const b = Buffer.alloc(1 + i * 37 % 20000, i % 256); buffers.push(b); if (i % 3) buffers[i >> 1] = null; sum += b[0]; }
    console.log(sum, crypto.createHash('sha256').update('x'.repeat(1e6)).digest('hex'));
    const packed = zlib.gzipSync(JSON.stringify([...Array(50000).keys()])); console.log(JSON.parse(zlib.gunzipSync(packed)).length);
    console.log(execFileSync('sh', ['-c', 'echo child']).toString().trim());
    const workers = [3, 5, 7].map(w => new Promise(done => new Worker(__filename, { workerData: w }).on('message', done)));
    Promise.all(workers).then(all => { console.log(all.join()); process.exitCode = 5; });
}
JS
    node main.js; echo "exit $?"
    node -e 'const m = new WebAssembly.Memory({initial: 100}); m.grow(100); console.log(m.buffer.byteLength); throw new TypeError("thrown")' 2>&1 | grep TypeError
    node --max-old-space-size=64 -e 'let a = []; for (let i = 0; i < 1e5; i++) a.push(new Array(10).fill(i)); console.log(a.length)'
}

case_ruby() {
    ruby -rjson -e '
        data = (1..20000).map { |i| { "id" => i, "name" => "n#{i * 7919 % 1009}", "list" => (0...(i % 20)).to_a } }
        back = JSON.parse(JSON.generate(data)); puts back == data
        groups = back.group_by { |r| r["name"] }; puts groups.size, groups.values.map(&:size).max
        GC.start; GC.compact if GC.respond_to?(:compact)
        puts (1..4).map { |t| Thread.new { (1..20000).map { |i| "s" * (i % 60) }.sum(&:size) + t } }.map(&:value).inspect
        r, w = IO.pipe; pid = fork { w.puts data.to_s.size; exit! 9 }; Process.wait pid; puts r.gets, $?.exitstatus
        puts "x" * 50_000 =~ /x{500}y/ ? 1 : 0
        require "set"; puts Set.new(back.flat_map { |h| h["list"] }).size
        raise ArgumentError, "raised" ' 2>&1 | sed 's/-e:[0-9]*//'
}

case_redis() {
    # Debian's redis is linked with jemalloc; the preload goes before it.
    cli() { redis-cli -p "$PORT" "$@"; }
    redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly yes --io-threads 2 --daemonize no >server.log 2>&1 &
    server=$!
    for _ in $(seq 100); do cli ping >/dev/null 2>&1 && break; sleep 0.1; done
    for i in $(seq 20000); do echo "SET key:$i value-$((i * 7919))"; echo "RPUSH list:$((i % 100)) $i"; echo "HSET hash:$((i % 50)) f$i $i"; echo "ZADD zset $((i * 31 % 9973)) m$i"; done | cli --pipe | tail -1
    redis-benchmark -h 127.0.0.1 -p "$PORT" -q -n 20000 -c 20 -P 4 -r 1000 -d 200 -t set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset --csv | cut -d, -f1
    cli flushall async >/dev/null
    for i in $(seq 5000); do echo "SET key:$i $(printf '%*s' $((i % 300)) x)"; echo "SADD set:$((i % 10)) $i"; done | cli --pipe | tail -1
    cli dbsize; cli memory purge; cli bgsave; for _ in $(seq 100); do [ "$(cli info persistence | tr -d '\r' | sed -n 's/^rdb_bgsave_in_progress://p')" = 0 ] && break; sleep 0.1; done
    cli info persistence | tr -d '\r' | grep -E 'rdb_last_bgsave_status|aof_last_write_status'
    cli eval 'local t = {} for i = 1, 1000 do t[i] = redis.call("GET", "key:" .. i) end return #table.concat(t)' 0
    cli bgrewriteaof; sleep 1; cli scard set:3; cli strlen key:299
    cli shutdown nosave; wait "$server"; echo "server exit $?"
    redis-check-rdb dump.rdb | grep -E 'OK|keys read|error' | sed 's/^\[[^]]*\] //'
    grep -iE 'crash|bug|assert' server.log
    true
}

case_cargo() {
    unset CARGO_TARGET_DIR RUSTFLAGS
    # rustc carries a jemalloc of its own.
    cargo new --quiet --vcs none --lib small 2>&1 && cd small && cat >src/lib.rs <<'RS'
//! A small crate with generics and a test.
use std::collections::{BTreeMap, HashMap};
macro_rules! table { ($($name:ident),*) => { $( #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)] pub struct $name { pub a: u64, pub b: String, pub c: Vec<u8> } )* } }
table!(A, B, C, D, E, F, G, H, I, J, K, L);
pub fn count(text: &str) -> BTreeMap<String, usize> {
    let mut all: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() { *all.entry(word.to_owned()).or_default() += 1; }
    all.into_iter().collect()
}
#[cfg(test)] mod tests { #[test] fn counts() { let t: String = (0..10000).map(|i| format!("w{} ", i % 97)).collect(); assert_eq!(super::count(&t).len(), 97); }
    #[test] fn threads() { let v: Vec<_> = (0..8).map(|n| std::thread::spawn(move || (0..2000).map(|i| vec![i as u8; i % 300 + n]).map(|v| v.len()).sum::<usize>())).collect(); assert!(v.into_iter().all(|h| h.join().unwrap() > 0)); } }
RS
    printf 'fn main() { let t: String = (0..100000).map(|i| format!("{} ", i %% 1009)).collect(); println!("{:?}", small::count(&t).iter().take(3).collect::<Vec<_>>()); std::process::exit(4) }\n' >src/main.rs
    cargo build --offline --quiet && cargo test --offline --quiet 2>&1 | grep 'test result' && cargo run --offline --quiet --release; echo "exit $?"
    echo 'pub fn bad() -> u32 { "text" }' >>src/lib.rs; cargo check --offline --quiet
}

case_python3() { "$PYTHON" -m test test_json test_dict test_set test_list test_threading test_subprocess test_gc test_bytes test_re test_sort test_weakref test_fork1 test_thread test_sqlite3 test_pickle test_ctypes test_mmap; }
case_python3_malloc() { PYTHONMALLOC=malloc "$PYTHON" -m test test_json test_dict test_set test_list test_threading test_subprocess test_bytes test_re test_gc; }

# --- what may differ: times, folders, process numbers -------------------------

blank() {
    sed -E -e "s#$SCRATCH/[a-z0-9_]+\.(with|without)#FOLDER#g" -e 's/0x[0-9a-f]{6,}/ADDRESS/g'
}
blank_cargo() { sed -E 's/finished in [0-9.]+s/finished/; s/[0-9]+ms|[0-9.]+s\b//g'; }
blank_redis() { sed -E "s/$PORT_with|$PORT_without/PORT/g"; }
blank_python3() {
    # regrtest's clock, load and temporary names; and this interpreter's own
    # numbers in messages.
    # How long a test took is in the line of the next one, if it took long.
    sed -E -e 's/^[0-9]+:[0-9:.]+ load avg: [0-9.]+ //' -e 's/ -- test_[a-z_]+ passed.*//' -e 's/Total duration: .*//' -e 's/test_python_[0-9]+(æ|_worker_[0-9]+)?/TMP/g' \
        -e 's/ in [0-9.]+ (sec|min|ms)[^)]*//' -e 's/@test_[0-9]+_tmp[^ ]*/TMP/g' -e '/^== /d' -e '/^Using random seed/d' -e 's/\([0-9.]+ sec\)//'
}
blank_python3_malloc() { blank_python3; }

# --- running them --------------------------------------------------------------

prepare() { # installs what a case needs and names the program it is about
    case $1 in
        bash) MAIN=$(command -v bash) ;;
        coreutils) packages xz-utils; MAIN=$(command -v sort) ;;
        perl) command_or_package perl perl; MAIN=$(command -v perl) ;;
        git) command_or_package git git; MAIN=$(command -v git) ;;
        gcc) command_or_package gcc gcc; command_or_package objdump binutils; MAIN=$(gcc -print-prog-name=cc1) ;;
        gxx) command_or_package g++ g++; MAIN=$(g++ -print-prog-name=cc1plus) ;;
        sqlite3) command_or_package sqlite3 sqlite3; MAIN=$(command -v sqlite3) ;;
        node) command_or_package node nodejs; MAIN=$(command -v node) ;;
        ruby) command_or_package ruby ruby; MAIN=$(command -v ruby) ;;
        redis) command_or_package redis-server redis-server; MAIN=$(command -v redis-server) ;;
        cargo) MAIN=$(rustup which cargo 2>/dev/null || command -v cargo) ;;
        python3*) python_with_tests; MAIN=$PYTHON ;;
        *) die "no case named $1; known: ${CASES[*]} ${LONG[*]}" ;;
    esac
    # Debian starts a server when it installs one.
    [ "$1" != redis ] || [ ! -d /run/systemd/system ] || systemctl stop redis-server 2>/dev/null || true
}

# An interpreter that has its own test suite: PATH's, or Debian's.
python_with_tests() {
    local candidate
    for candidate in python3 /usr/bin/python3; do
        PYTHON=$($candidate -c 'import sys, test.test_json, test.test_dict; print(sys.executable)' 2>/dev/null) && break
        PYTHON=
    done
    if [ -z "$PYTHON" ]; then
        packages python3
        PYTHON=/usr/bin/python3
        packages "lib$(basename "$(readlink -f $PYTHON)")-testsuite" # of that version
    fi
    export PYTHON
}

# A preload that did not take effect would pass every comparison.
takes_effect() {
    local loaded
    loaded=$(LD_PRELOAD=$HEAPWRIGHT_SO LD_TRACE_LOADED_OBJECTS=1 "$(readlink -f "$1")" 2>/dev/null || true)
    [[ $loaded == *"$HEAPWRIGHT_SO"* ]]
}

side() { # NAME with|without
    local folder=$SCRATCH/$1.$2 preload= code=0 port_name=PORT_$2
    mkdir -p "$folder/in"
    [ "$2" = without ] || preload=$HEAPWRIGHT_SO
    (
        cd "$folder/in"
        export ROOT SIDE=$2 PORT=${!port_name}
        unset CDPATH
        [ "$2" = without ] || [ -z "$OPTIONS" ] || export HEAPWRIGHT=$OPTIONS
        LD_PRELOAD=$preload exec timeout -k 5 240 bash -c "$(declare -f "case_$1"); case_$1"
    ) >"$folder/stdout.raw" 2>"$folder/stderr.raw" </dev/null || code=$?
    local stream
    for stream in stdout stderr; do
        blank <"$folder/$stream.raw" | { if declare -F "blank_$1" >/dev/null; then "blank_$1"; else cat; fi } >"$folder/$stream"
    done
    echo "exit status $code" >"$folder/status"
}

preload_library
PORT_with=$((20000 + RANDOM % 10000)); PORT_without=$((PORT_with + 1))
failed=()
verbose=
[ "${1:-}" = -v ] && { verbose=yes; shift; }
OPTIONS=
[ "${1:-}" = --with ] && { OPTIONS=$2; shift 2; }
[ $# -gt 0 ] && CASES=("$@")
for name in "${CASES[@]}"; do
    prepare "$name"
    if ! takes_effect "$MAIN"; then
        printf 'FAIL %-16s the preload does not take effect in %s\n' "$name" "$MAIN"
        failed+=("$name")
        continue
    fi
    start=$SECONDS
    side "$name" with & with=$!
    side "$name" without & without=$!
    wait $with; wait $without
    [ -z "$verbose" ] || cat "$SCRATCH/$name.with/stdout" "$SCRATCH/$name.with/stderr"
    verdict=ok
    for part in status stdout stderr; do
        diff -U3 --label "$name without: $part" --label "$name with: $part" \
            "$SCRATCH/$name.without/$part" "$SCRATCH/$name.with/$part" >"$SCRATCH/$name.$part.diff" || verdict=FAIL
    done
    [ -s "$SCRATCH/$name.without/stdout" ] || verdict=FAIL
    printf '%-4s %-16s %3d s, %s, %d lines\n' $verdict "$name" $((SECONDS - start)) \
        "$(cat "$SCRATCH/$name.without/status")" "$(cat "$SCRATCH/$name.without"/std{out,err} | wc -l)"
    if [ $verdict = FAIL ]; then
        failed+=("$name")
        for part in status stdout stderr; do head -60 "$SCRATCH/$name.$part.diff" | sed 's/^/    /'; done
    fi
    rm -rf "$SCRATCH/$name.with/in" "$SCRATCH/$name.without/in"
done
[ ${#failed[@]} -eq 0 ] || { say "FAIL: ${failed[*]}"; exit 1; }
say "all ${#CASES[@]} programs behave the same${OPTIONS:+ with $OPTIONS}"
