#!/usr/bin/env bash
# No false alarms: real programs under `heapwright check` with its defaults, which looks at what functions of the C library
# read and write, too. None of them has an error; leaks that they have are theirs, and not looked at here.
#
#   ci/alarms.sh              all of them
#   ci/alarms.sh perl nginx   only these
#   ci/alarms.sh --more [NAME...]
#                             those of ci/alarms-more.sh: compilers, interpreters, servers that need many packages
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
#
# Each case is a function that runs in an empty folder; what it checks it calls by $CHECK. A case that ends otherwise than it
# does without heapwright fails, too. More were run by hand, with valgrind beside: see docs/check.md.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

CASES=(arrays tcc perl lua tcl jq sqlite3 pack openssl git text make nginx)
PACKAGES=(tcc perl lua5.4 tcl jq sqlite3 xz-utils zstd openssl git make gawk nginx curl gcc g++)
if [ "${1:-}" = --more ]; then
    shift
    . ci/alarms-more.sh
fi
# Packages' servers are not started: they are only to be there.
if [ "$(id -u)" -eq 0 ] && [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'rm -f /usr/sbin/policy-rc.d; tidy' EXIT
    install -m 755 /dev/stdin /usr/sbin/policy-rc.d <<<$'#!/bin/sh\nexit 101'
    packages "${PACKAGES[@]}"
    rm -f /usr/sbin/policy-rc.d
    trap tidy EXIT
else
    packages "${PACKAGES[@]}"
fi
the_command

# Arrays that a library's constructor makes, before that of a preloaded library runs: octave has nineteen.
case_arrays() {
    echo 'struct A { int *p; A() : p(new int[4]()) {} ~A() { delete[] p; } } a;' >a.cc
    echo 'int main() { return 0; }' >main.cc
    g++ -shared -fPIC a.cc -o liba.so && g++ main.cc -Wl,--no-as-needed -L. -la -Wl,-rpath,"$PWD" -o main && $CHECK ./main
}
case_tcc() {
    printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = malloc(9); sprintf(p, "%%d", 7); puts(p); free(p); return 0; }\n' >a.c
    $CHECK tcc a.c -o a && ./a
}
case_perl() {
    $CHECK perl -e '
        use threads; use Encode; use POSIX;
        my %h = map { $_ => [1 .. $_ % 50] } 1 .. 2000;
        my @t = map { my $k = $_; threads->create(sub { my $s = $k; $s += length join ",", @{ $h{$_} } for keys %h; $s }) } 1 .. 3;
        print $_->join, "\n" for @t;
        open my $p, "-|", "echo child"; print <$p>;
        print "$1 ", length encode("utf8", "\x{263a}" x 100), strftime("%Y", gmtime 0), "\n" if "aaab" =~ /(a+)b/;'
}
case_lua() {
    $CHECK lua5.4 -e '
        local t = {} for i = 1, 20000 do t[i] = tostring(i) .. ("x"):rep(i % 30) end table.sort(t) print(#table.concat(t))
        print(string.format("%q %5.2f %s", "a\n", 1.5, t[1]), ("abc"):gsub("%w", "%0%0"), load("return 1 + 1")(), pcall(error, "e"))'
}
case_tcl() {
    $CHECK tclsh <<<'set l {}; for {set i 0} {$i < 20000} {incr i} { lappend l "x$i" }; puts [string length [join [lsort $l] ,]]
        puts [regexp -inline {x(\d+)} x12]; puts [exec echo child]; puts [clock format 0 -gmt 1]; puts [dict create a [dict create b c]]'
}
case_jq() {
    seq 2000 | $CHECK jq -sc 'map({a: ., b: (tostring * 2)}) | group_by(.a % 7) | map({n: length, s: (map(.b) | join(",") | length)})'
    echo '{"a":[1,{"b":null}]}' | $CHECK jq -c 'paths, (.a[1].b // "x" | test("x")), @base64 "\(.a)"'
}
case_sqlite3() {
    $CHECK sqlite3 x.db "create table t(a integer primary key, b text);
        with recursive c(i) as (select 1 union all select i + 1 from c where i < 10000) insert into t select i, hex(i * 7919) from c;
        create index x on t(b); select count(*), max(b) from t where b like '3%'; select length(group_concat(a)) from t;
        select json_group_array(a) from (select a from t limit 10); vacuum;"
}
case_pack() {
    seq 100000 >f
    $CHECK xz -T2 -k -1 f && $CHECK xz -dc f.xz | cmp - f && $CHECK zstd -q -T4 f -o f.zst && $CHECK zstd -q -dc f.zst | cmp - f && $CHECK gzip -k f
}
case_openssl() {
    seq 1000 >f
    $CHECK openssl req -x509 -newkey rsa:1024 -nodes -keyout k -out c -days 2 -subj /CN=x 2>keys.log
    $CHECK openssl x509 -in c -noout -subject && $CHECK openssl enc -aes-256-cbc -pbkdf2 -k p -in f -out e &&
        $CHECK openssl enc -d -aes-256-cbc -pbkdf2 -k p -in e | cmp - f
}
case_git() {
    $CHECK git init -q r && cd r && git config user.email a@b && git config user.name x
    for i in 1 2 3; do seq $((i * 500)) >f; $CHECK git add . && $CHECK git commit -qm "$i"; done
    $CHECK git log --stat -p --graph | wc -l; $CHECK git gc -q; $CHECK git blame f | tail -1 | wc -c; $CHECK git clone -q . ../q; $CHECK git grep -c 77
}
case_text() {
    seq 20000 | $CHECK gawk '{ a["k" $1 % 997] = a["k" $1 % 997] $1 } END { n = asorti(a, b); print n, length(a["k5"]), gensub(/(.)k/, "\\1", "g", b[3]) }'
    seq 20000 | $CHECK sort -R --random-source=/dev/zero --parallel=4 | wc -l; seq 2000 | $CHECK sed -E 's/(.)(.)/\2\1/g; N; P; D' | cksum
    mkdir m && split -l 1000 <(seq 20000) m/ && $CHECK tar czf a.tgz m && $CHECK tar xzf a.tgz -O | cksum; $CHECK diff m/aa m/ab | wc -l
}
case_make() {
    printf 'all: $(patsubst %%,f%%,$(shell seq 20))\nf%%:\n\t@echo $@ | tr f g >$@\n' >Makefile
    $CHECK make -s -j4 && cat f* | cksum
}
# Its workers give up root's user.
case_nginx() {
    chmod 755 .; seq 20000 >i.html
    printf 'daemon off; worker_processes 2; pid n.pid; error_log e.log; events {} http { access_log a.log; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; gzip on; gzip_types *; server { listen unix:n.sock; root .; location /x { rewrite ^/x(.*)$ /i.html?$1 last; } } }' >n.conf
    $CHECK nginx -p "$PWD" -c n.conf & server=$!
    for _ in $(seq 200); do [ -S n.sock ] && [ -s n.pid ] && break; sleep 0.1; done
    for page in i.html x1 none 'i.html?a=b'; do curl -s --compressed --unix-socket n.sock "http://x/$page" | cksum; done
    kill -QUIT "$(cat n.pid)"; wait $server
}

run() { # NAME, and the words before a checked program
    local folder=$SCRATCH/$1.$2 status=0
    mkdir -p "$folder/in" "$folder/home" "$folder/reports"
    # Leaks are told, and are the programs' own.
    (
        cd "$folder/in"
        [ "$2" = plain ] && export CHECK= || export CHECK=checked
        # Without what the user has set, for git above all.
        export HOME=$folder/home GIT_CONFIG_NOSYSTEM=1 REPORTS=$folder/reports HEAPWRIGHT_COMMAND
        checked() { "$HEAPWRIGHT_COMMAND" check --fail-on errors -o "$(mktemp "$REPORTS/XXXXXX")" -- "$@"; }
        export -f checked
        timeout -k 5 240 bash -c "$(declare -f); case_$1"
    ) >"$folder/out" 2>"$folder/err" </dev/null || status=$?
    echo "exit $status" >>"$folder/out"
}

chmod 755 "$SCRATCH"
[ $# -gt 0 ] && CASES=("$@")
failed=()
for name in "${CASES[@]}"; do
    start=$SECONDS
    run "$name" plain; run "$name" checked
    reports=("$SCRATCH/$name.checked/reports/"*)
    verdict=ok
    cmp -s "$SCRATCH/$name.plain/out" "$SCRATCH/$name.checked/out" || verdict=FAIL
    [ -f "${reports[0]}" ] && ! grep -q 'ERROR: heapwright' "${reports[@]}" || verdict=FAIL
    printf '%-4s %-10s %3d s, %d runs\n' $verdict "$name" $((SECONDS - start)) ${#reports[@]}
    if [ $verdict = FAIL ]; then
        failed+=("$name")
        diff "$SCRATCH/$name.plain/out" "$SCRATCH/$name.checked/out" | head -10
        head -20 "$SCRATCH/$name.checked/err"
        cat "${reports[@]}" 2>/dev/null | grep -A12 'ERROR: heapwright' | head -40
    fi
done
[ ${#failed[@]} -eq 0 ] || { say "FAIL: ${failed[*]}"; exit 1; }
say "no error in ${#CASES[@]} programs"
