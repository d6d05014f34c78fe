#!/usr/bin/env bash
# prepare.sh WORK full|quick: makes the inputs of the real programs that measure the debug mode and `heapwright check`,
# the same on each machine. Prints a line for each, with tabs: NAME STDIN [NAME=VALUE...] COMMAND [ARGUMENT...]. These
# seven programs are also in the race (bench/programs). A program that is not installed gets a line on stderr.
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: prepare.sh WORK full|quick" >&2; exit 2; }
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/../programs/inputs.sh"
inputs_in "$1"
size=$2

# sized FULL QUICK: prints the chosen one.
sized() { if [ "$size" = quick ]; then echo "$2"; else echo "$1"; fi; }
tabbed() { local IFS=$'\t'; printf '%s\n' "$*"; }

# made KIND COUNT: prints the path of an input.
made() { generated "$1" "$2" "$1.$2" && echo "$WORK/$1.$2"; }

add_python3() {
    local python
    python=$(python_here) || { missing python3 "no python3"; return; }
    tabbed python3 - PYTHONMALLOC=malloc PYTHONHASHSEED=1 "$python" "$HERE/../programs/objects.py" "$(sized 100 8)"
}

add_ruby() {
    have ruby || { missing ruby "no ruby"; return; }
    tabbed ruby - "$(ruby -e 'puts RbConfig.ruby')" --disable-gems "$HERE/../programs/records.rb" "$(sized 100 8)"
}

add_perl() { tabbed perl - PERL_HASH_SEED=0 "$(command -v perl)" "$HERE/../programs/text.pl" "$(sized 100 8)"; }

add_sqlite3() {
    have sqlite3 || { missing sqlite3 "no sqlite3"; return; }
    local rows
    rows=$(sized 150000 10000)
    sed "s/300000/$((2 * rows))/g; s/150000/$rows/g" "$HERE/../programs/query.sql" >"$WORK/query.$rows.sql"
    tabbed sqlite3 "$WORK/query.$rows.sql" "$(command -v sqlite3)" :memory:
}

add_git() {
    have git || { missing git "no git"; return; }
    local commits
    commits=$(sized 1500 60)
    repository "repository.$commits.git" "$commits"
    tabbed git - GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 "$(command -v git)" \
        -C "$WORK/repository.$commits.git" log -p --stat -M main
}

add_cc1() {
    local cc1
    cc1=$(cc1_here) || { missing cc1 "no gcc"; return; }
    tabbed cc1 - "$cc1" -quiet -O2 "$(made c "$(sized 240 12)")" -o -
}

add_redis() {
    have redis-server && have redis-cli && have redis-benchmark || { missing redis "no redis-server, redis-cli or redis-benchmark"; return; }
    tabbed redis - /bin/sh "$HERE/../programs/redis.sh" "$(made redis "$(sized 160000 8000)")" "$(sized 40000 1000)"
}

for program in python3 ruby perl sqlite3 git cc1 redis; do "add_$program"; done
