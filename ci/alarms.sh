#!/usr/bin/env bash
# No false alarms: real programs under `heapwright check` with its defaults, which looks at what functions of the C library
# read and write, too. None of them has an error; leaks that they have are theirs, and not looked at here.
#
#   ci/alarms.sh              all of them
#   ci/alarms.sh perl nginx   only these
#   ci/alarms.sh --more [NAME...]
#                             thirty-four more: compilers, interpreters, servers. They need packages of some 700 MB
#                             and ten minutes, so CI does not run them
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
    CASES=(gfortran gdc bison swig iverilog verilator yasm cppcheck protoc zsh clisp chicken gforth gp racket pypy z3 erlang
        gnuplot graphviz xslt ghostscript poppler qpdf archives groff unbound dnsmasq haproxy mosquitto slapd stunnel privoxy dropbear)
    PACKAGES=(gfortran gdc bison flex swig iverilog verilator yasm cppcheck protobuf-compiler zsh clisp chicken-bin gforth
        pari-gp racket pypy3 z3 erlang-base gnuplot-nox graphviz xsltproc libxml2-utils ghostscript poppler-utils qpdf p7zip-full flac
        zip unzip groff unbound dnsmasq-base haproxy mosquitto mosquitto-clients slapd stunnel4 privoxy dropbear-bin curl socat openssl binutils gcc g++ python3)
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

# The programs that --more adds.

# --- compilers and readers of languages ---------------------------------------------

case_gfortran() {
    cat >a.f90 <<'F'
module m
  type :: node
    integer :: key
    type(node), pointer :: next => null()
  end type
contains
  recursive function total(n) result(s)
    type(node), pointer, intent(in) :: n
    integer :: s
    s = 0
    if (associated(n)) s = n%key + total(n%next)
  end function
end module
program p
  use m
  type(node), pointer :: list, one
  real(8), allocatable :: a(:,:), b(:,:)
  character(len=:), allocatable :: text
  integer :: i
  nullify(list)
  do i = 1, 1000
    allocate(one); one%key = i; one%next => list; list => one
  end do
  allocate(a(60,60), b(60,60)); a = 1.5d0; b = matmul(a, transpose(a))
  text = ''
  do i = 1, 50; text = text // char(64 + mod(i, 26)); end do
  write(*, '(i8, f12.3, a)') total(list), sum(b), text
  do while (associated(list)); one => list%next; deallocate(list); list => one; end do
end program
F
    $CHECK gfortran -O2 -g a.f90 -o a && $CHECK ./a
}
case_gdc() {
    cat >a.d <<'D'
import std.stdio, std.algorithm, std.array, std.conv, std.parallelism;
void main() {
    auto words = new string[](0);
    foreach (i; 0 .. 3000) words ~= to!string(i * 7919 % 997);
    int[string] count;
    foreach (w; words) count[w]++;
    writeln(count.length, " ", words.sort().uniq().array().length, " ", taskPool.reduce!"a + b"(0, words.map!(w => cast(int) w.length)));
}
D
    $CHECK gdc -g a.d -o a && $CHECK ./a
}
case_bison() {
    cat >g.y <<'Y'
%{
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%define parse.error verbose
%token NUM
%left '+' '-'
%left '*' '/'
%%
all: | all e '\n' { printf("%d\n", $2); } | all error '\n' { yyerrok; };
e: NUM | e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; };
%%
int main(void) { return yyparse(); }
Y
    printf '%%{\n#include "g.tab.h"\n%%}\n%%option noyywrap nounput noinput\n%%%%\n[0-9]+ { extern int atoi(const char *); yylval = atoi(yytext); return NUM; }\n[ \\t] ;\n.|\\n return *yytext;\n' >l.l
    $CHECK bison -d --report=all g.y && $CHECK flex l.l && gcc -g -w g.tab.c lex.yy.c -o calc &&
        printf '1+2*3\n(4-5)*6\n7 +\n8\n' | $CHECK ./calc; cksum <g.output
}
case_swig() {
    printf '%%module shop\n%%include "std_string.i"\n%%include "std_vector.i"\n%%template(V) std::vector<int>;\nclass A { public: A(int); virtual ~A(); std::string name(const char *); static A *make(double x = 1.5); };\n' >shop.i
    $CHECK swig -c++ -python shop.i && grep -v -i version shop.py | cksum && $CHECK swig -c++ -perl shop.i && grep -c shop <shop_wrap.cxx
}
case_iverilog() {
    cat >t.v <<'V'
module counter(input clk, input rst, output reg [7:0] q);
  always @(posedge clk or posedge rst) if (rst) q <= 0; else q <= q + 3;
endmodule
module t; reg clk = 0, rst = 1; wire [7:0] q; integer i; reg [31:0] mem [0:255];
  counter c(clk, rst, q);
  initial begin rst = 0; #1 rst = 1; #1 rst = 0; for (i = 0; i < 500; i = i + 1) begin #1 clk = ~clk; mem[i % 256] = q * i; end
    $display("%d %h %s", q, mem[17], "done"); $finish; end
endmodule
V
    $CHECK iverilog -g2012 -o t t.v && $CHECK vvp -n t
}
case_verilator() {
    printf 'module top(input clk, input [31:0] a, output reg [31:0] b);\n always @(posedge clk) b <= (a * 32%sd7919) ^ (b >> 3);\nendmodule\n' "'" >top.v
    $CHECK verilator_bin --cc top.v --Mdir obj && ls obj | sort && $CHECK verilator_bin --lint-only top.v
}
case_yasm() {
    for i in $(seq 400); do echo "label$i: mov rax, [rel data$((i % 7))]"; echo "  jmp label$((i * 31 % 400 + 1))"; done >a.asm
    for i in $(seq 0 6); do echo "data$i: dq $i * 17, label1"; done >>a.asm
    $CHECK yasm -f elf64 -g dwarf2 -l a.lst a.asm -o a.o && objdump -d a.o | cksum && $CHECK yasm -f bin -o b <(printf 'bits 16\n%%macro m 1\n db %%1\n%%endmacro\n%%rep 9\n m 3\n%%endrep\n')
}
case_cppcheck() {
    printf '#include <vector>\nstruct A { int *p; A() { p = new int[4]; } ~A() { delete p; } };\nint f(int n) { int a[4]; std::vector<int> v; for (int i = 0; i <= 4; i++) a[i] = i; return a[n] + v[0]; }\n' >a.cc
    $CHECK cppcheck -q --enable=all --inconclusive a.cc 2>&1 | sort; $CHECK cppcheck -q -j2 a.cc 2>&1 | sort
}
case_protoc() {
    printf 'syntax = "proto3";\npackage shop;\nmessage Item { string name = 1; repeated Item parts = 2; map<string, int64> stock = 3; oneof kind { int32 a = 4; bytes b = 5; } }\nservice S { rpc Get(Item) returns (stream Item); }\n' >shop.proto
    mkdir o && $CHECK protoc --cpp_out=o --python_out=o --java_out=o --descriptor_set_out=o/d shop.proto && find o -type f | sort | xargs cat | cksum
    printf 'name: "x" parts { name: "y" } stock { key: "k" value: 7 }' | $CHECK protoc --encode=shop.Item shop.proto >m && $CHECK protoc --decode=shop.Item shop.proto <m
}

# --- interpreters and provers -----------------------------------------------------------

case_zsh() {
    $CHECK zsh -f -c 'typeset -A a; for i in {1..3000}; do a[k$((i % 97))]+=$i; done; print ${#a} ${#a[k5]} ${(j:,:)${(ok)a}[1,5]}
        l=({a..e}{1..20}); print ${#l} ${l[(r)c7]} ${(U)l[3]} ${#${l:#a*}}; print -- *(N) =(print x)(N:h); x=$(print -l $l | sort -r | head -2); print $x
        [[ abc123 =~ "([a-z]+)([0-9]+)" ]] && print $match; zmodload zsh/mathfunc; printf "%.3f\n" $((sin(1))); exit 3'; echo $?
}
case_clisp() {
    $CHECK clisp -q -norc -x '(let ((h (make-hash-table :test (quote equal)))) (dotimes (i 3000) (incf (gethash (format nil "~R" (mod i 97)) h 0) i)) (print (hash-table-count h)) (gc) (print (loop for k being the hash-keys of h maximize (length k))))'
}
case_chicken() { $CHECK csi -q -e '(let loop ((i 0) (l (quote ()))) (if (< i 20000) (loop (+ i 1) (cons (number->string i) l)) (print (length l) (apply + (map string-length l)))))'; }
case_gforth() { $CHECK gforth -e ': fib dup 2 < if drop 1 else dup 1- recurse swap 2 - recurse + then ; 20 fib . 1000 allocate throw dup 2000 resize throw free throw cr bye'; }
case_gp() {
    $CHECK gp -q -f <<<'print(factor(2^101-1)); print(#select(isprime,[1..20000])); m=matrix(20,20,i,j,i^j%17); print(matrank(m)," ",polroots(x^5-x-1)[1]); v=vector(3000,i,Str(i)); print(#Set(v)); quit'
}
case_racket() { $CHECK racket -I racket/base -e '(define h (make-hash)) (for ([i 20000]) (hash-update! h (modulo (* i 7919) 997) add1 0)) (displayln (hash-count h)) (define t (for/list ([k 3]) (thread (lambda () (for/sum ([i 10000]) i))))) (for-each thread-wait t) (displayln (string-length (format "~a" (hash->list h))))'; }
case_pypy() {
    $CHECK pypy3 -c 'import threading, json, re, zlib, ctypes
out = []
def work(n): out.append(sum(len(str(i * n)) for i in range(20000)))
t = [threading.Thread(target=work, args=(n,)) for n in (3, 5, 7)]
[x.start() for x in t]; [x.join() for x in t]
print(sorted(out), len(zlib.compress(json.dumps(list(range(5000))).encode())), re.sub("(a)(b)", r"\2\1", "ab" * 9)); p = ctypes.create_string_buffer(100); print(len(p))'
}
case_z3() {
    cat >a.smt2 <<'S'
(declare-const a Int) (declare-const b Int) (declare-fun f (Int) Int)
(assert (and (> a 10) (< (* a b) 200) (= (f a) (+ (f b) 7)) (distinct a b)))
(check-sat)
(push) (declare-const v (_ BitVec 32)) (assert (= (bvmul v #x00001eef) #x12345679)) (check-sat) (get-value (v)) (pop)
(declare-const s String) (assert (str.in_re s (re.+ (str.to_re "ab")))) (assert (> (str.len s) 5)) (check-sat)
S
    $CHECK z3 a.smt2
}
case_erlang() {
    $CHECK erl -noshell -eval 'P = self(), [spawn(fun() -> P ! {N, lists:sum([X * N || X <- lists:seq(1, 20000)])} end) || N <- [3, 5, 7]], io:format("~p~n", [lists:sort([receive R -> R end || _ <- [1, 2, 3]])]), T = ets:new(t, [set]), [ets:insert(T, {I rem 97, integer_to_list(I)}) || I <- lists:seq(1, 5000)], io:format("~p ~p~n", [ets:info(T, size), byte_size(zlib:compress(term_to_binary(lists:seq(1, 5000))))]), halt().'
}

# --- documents and pictures ---------------------------------------------------------------

case_gnuplot() { $CHECK gnuplot -e 'set term dumb 60 20; set samples 200; plot sin(x) / x, [0:10] x ** 2 / 50; set term svg; set out "a.svg"; splot x * y; fit_limit = 1e-6; f(x) = a * x + b; print 1'; wc -l <a.svg; }
case_graphviz() {
    { echo 'digraph g { node [shape=record]; subgraph cluster_a { a -> b [label="x<y"]; }'; for i in $(seq 120); do echo "n$i -> n$((i * 31 % 120)) [weight=$((i % 5))];"; done; echo '}'; } >g.dot
    $CHECK dot -Tplain g.dot | cksum; $CHECK neato -Tdot g.dot | wc -l; $CHECK dot -Tsvg g.dot | cksum; $CHECK gvpr -c 'N { label = name; }' g.dot | cksum
}
case_xslt() {
    { echo '<!DOCTYPE r [<!ENTITY e "entity">]><r>'; for i in $(seq 1500); do echo "<i k='$((i % 37))'><n>name &e; $i</n></i>"; done; echo '</r>'; } >a.xml
    echo '<x:stylesheet version="1.0" xmlns:x="http://www.w3.org/1999/XSL/Transform"><x:key name="k" match="i" use="@k"/><x:template match="/"><o n="{count(//i)}"><x:for-each select="//i[generate-id() = generate-id(key(&quot;k&quot;, @k)[1])]"><x:sort select="@k" data-type="number"/><g k="{@k}"><x:value-of select="count(key(&quot;k&quot;, @k))"/></g></x:for-each></o></x:template></x:stylesheet>' >a.xsl
    $CHECK xsltproc a.xsl a.xml | cksum; $CHECK xmllint --noent --format --xpath 'count(//i[@k > 30]/n)' a.xml; $CHECK xmllint --stream --c14n a.xml | cksum; echo '<a><b></a>' | $CHECK xmllint - 2>&1; $CHECK xmllint --html --noout - <<<'<p>x<table><b>' 2>&1
}
case_ghostscript() {
    printf '%%!PS\n/Times-Roman findfont 20 scalefont setfont 1 1 30 { dup 20 mul 50 moveto (text ) show 20 string cvs show } for showpage 100 100 moveto 0.5 setgray 0 0 1 setrgbcolor 200 300 400 500 600 100 curveto stroke showpage\n' >a.ps
    $CHECK gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -sOutputFile=a.pdf a.ps && $CHECK gs -q -dNOPAUSE -dBATCH -sDEVICE=pgmraw -r50 -sOutputFile=- a.pdf | cksum
}
case_poppler() { case_ghostscript >/dev/null; $CHECK pdftotext a.pdf - | cksum; $CHECK pdftoppm -r 40 a.pdf p && cat p*.ppm | cksum; $CHECK pdfinfo a.pdf | grep Pages; $CHECK pdffonts a.pdf | wc -l; }
case_qpdf() { case_ghostscript >/dev/null; $CHECK qpdf --linearize --deterministic-id a.pdf b.pdf && $CHECK qpdf --check b.pdf | tail -1; $CHECK qpdf --json b.pdf | wc -l; $CHECK qpdf --encrypt u o 256 -- a.pdf c.pdf; $CHECK qpdf --password=u --show-npages c.pdf; }
case_archives() {
    mkdir d && for i in $(seq 30); do seq $((i * 50)) >d/f$i; done
    $CHECK zip -q -r a.zip d && $CHECK unzip -q -t a.zip && $CHECK 7z a -bd -mmt=4 a.7z d | grep -c Everything; $CHECK 7z t -bd a.7z | grep -c Everything
    head -c 400000 /dev/zero | tr '\0' 'a' >raw && $CHECK flac --silent --force-raw-format --endian=little --sign=signed --channels=2 --bps=16 --sample-rate=44100 -8 raw -o a.flac && $CHECK flac --silent -d a.flac -o b.wav && cksum <b.wav
}
case_groff() { { echo '.TH A 1'; for i in $(seq 300); do printf '.SH part %d\n.TP\n\\fBword%d\\fP\ntext of it that goes on \\(em for a while\n' "$i" "$i"; done; printf '.TS\nbox;\nl r.\na\t1\nb\t2\n.TE\n.EQ\nx sup 2 over y\n.EN\n'; } | $CHECK groff -Tutf8 -man -t -e -p | cksum; }

# --- servers: each runs in the folder, answers, and is asked to end ---------------------------

port() { echo $((20000 + ($$ * 7 + $1) % 20000)); }
until_there() { for _ in $(seq 300); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done; }
# asked PORT NAME...: the addresses that a name server has.
asked() {
    python3 - "$@" <<'P'
import socket, sys
for name in sys.argv[2:]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(9)
        parts = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
        s.sendto(b"\0\7\1\0\0\1\0\0\0\0\0\0" + parts + b"\0\0\1\0\1", ("127.0.0.1", int(sys.argv[1])))
        answer = s.recv(4096)
        print(name, answer[3] & 15, ".".join(map(str, answer[-4:])) if answer[7] else "-")
P
}
case_unbound() {
    printf 'server:\n interface: 127.0.0.1\n port: %s\n num-threads: 2\n do-daemonize: no\n chroot: ""\n username: ""\n directory: "%s"\n pidfile: "%s/u.pid"\n use-syslog: no\n logfile: "%s/u.log"\n local-zone: "shop." static\n' "$(port 1)" "$PWD" "$PWD" "$PWD" >u.conf
    for i in $(seq 500); do printf ' local-data: "h%d.shop. A 10.0.%d.%d"\n' "$i" $((i / 250)) $((i % 250)); done >>u.conf
    $CHECK unbound-checkconf u.conf | sed 's/in .*//'; $CHECK unbound -d -c u.conf & server=$!
    until_there "$(port 1)"; asked "$(port 1)" h1.shop h77.shop h500.shop h501.shop
    kill "$(cat u.pid)"; wait "$server"
}
case_dnsmasq() {
    for i in $(seq 500); do echo "10.1.$((i / 250)).$((i % 250)) d$i"; done >hosts
    $CHECK dnsmasq -k -u root -p "$(port 2)" -a 127.0.0.1 -z -R -h -H "$PWD/hosts" -x "$PWD/d.pid" --log-facility="$PWD/d.log" & server=$!
    until_there "$(port 2)"; asked "$(port 2)" d3 d400 none
    kill "$(cat d.pid)"; wait "$server"
}
case_haproxy() {
    seq 3000 >page; (cd . && exec python3 -m http.server -b 127.0.0.1 "$(port 4)") >/dev/null 2>&1 & origin=$!
    printf 'global\n nbthread 4\n pidfile h.pid\ndefaults\n mode http\n timeout connect 9s\n timeout client 9s\n timeout server 9s\n compression algo gzip\n compression type text/plain application/octet-stream\nfrontend f\n bind 127.0.0.1:%s\n http-request set-header X-A %%[src]\n acl no path_beg /no\n http-request deny if no\n default_backend b\nbackend b\n server s 127.0.0.1:%s\n' "$(port 3)" "$(port 4)" >h.conf
    until_there "$(port 4)"; $CHECK haproxy -db -f h.conf & server=$!
    until_there "$(port 3)"; for p in page no/x page?a=1; do curl -s --compressed "http://127.0.0.1:$(port 3)/$p" | cksum; done
    kill "$server"; wait "$server"; kill "$origin"; true
}
case_mosquitto() {
    printf 'listener %s 127.0.0.1\nallow_anonymous true\npid_file %s/m.pid\nuser root\nlog_dest none\n' "$(port 5)" "$PWD" >m.conf
    $CHECK mosquitto -c m.conf & server=$!
    until_there "$(port 5)"; $CHECK mosquitto_sub -p "$(port 5)" -t 'a/#' -C 3 >got & reader=$!
    sleep 2; for i in 1 2 3; do $CHECK mosquitto_pub -p "$(port 5)" -t a/b -q 1 -m "message $i"; done
    wait "$reader"; sort got; kill "$(cat m.pid)"; wait "$server"
}
case_slapd() {
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
}
case_stunnel() {
    openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 2 -subj /CN=x 2>/dev/null; cat k c >kc
    printf 'foreground = yes\npid = %s/t.pid\n[s]\naccept = 127.0.0.1:%s\nexec = /bin/cat\nexecArgs = cat\ncert = kc\n' "$PWD" "$(port 7)" >t.conf
    $CHECK stunnel4 t.conf >t.log 2>&1 & server=$!
    until_there "$(port 7)"; for i in 1 2; do (seq $((i * 100)); sleep 1) | timeout 9 socat -t 2 - "OPENSSL:127.0.0.1:$(port 7),verify=0" | cksum; done
    kill "$(cat t.pid)"; wait "$server"
}
case_privoxy() {
    seq 3000 >page; (exec python3 -m http.server -b 127.0.0.1 "$(port 11)") >/dev/null 2>&1 & origin=$!
    printf 'listen-address 127.0.0.1:%s\nconfdir /etc/privoxy\nlogdir %s\nlogfile l\nfilterfile default.filter\nactionsfile default.action\naccept-intercepted-requests 1\n' "$(port 10)" "$PWD" >p.conf
    until_there "$(port 11)"; $CHECK privoxy --no-daemon --pidfile "$PWD/p.pid" p.conf & server=$!
    until_there "$(port 10)"; for p in page page none; do curl -s -x "http://127.0.0.1:$(port 10)" "http://127.0.0.1:$(port 11)/$p" | wc -l; done
    kill "$(cat p.pid)"; wait "$server"; kill "$origin"; true
}
case_dropbear() {
    $CHECK dropbearkey -t ed25519 -f key | grep -c ssh-ed25519; $CHECK dropbearkey -t rsa -s 1024 -f rsa | grep -c ssh-rsa
    $CHECK dropbear -F -E -r key -p "127.0.0.1:$(port 12)" -P "$PWD/d.pid" 2>d.log & server=$!
    until_there "$(port 12)"; $CHECK dbclient -y -y -p "$(port 12)" nobody@127.0.0.1 true 2>&1 </dev/null | sed -n 's/.*\(closed\|No auth\).*/refused/p' | head -1
    kill "$(cat d.pid)"; wait "$server"
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
