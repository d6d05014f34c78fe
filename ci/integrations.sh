#!/usr/bin/env bash
# Tests the integrations with other tools (integrations/), on programs with a mistake and on twins without it.
#
#   ci/integrations.sh action      the GitHub action, as a dry run: its shell steps on a program that loses a block and
#                                  on one that does not, with a runner's variables and files (dry_run.py)
#   ci/integrations.sh pytest      the pytest plugin, installed from its folder, on an extension in C. The wrong tests
#                                  fail, under their names and with the function at fault
#   ci/integrations.sh listeners   the listeners for GoogleTest and Catch2, and Go's package if Go is installed. Tests
#                                  that lose a block fail, and the commands in the failures show the functions at fault
#   ci/integrations.sh valgrind    tools that call valgrind get heapwright: CTest's memcheck step, meson's wrapper and
#                                  test setup, a Makefile's rule. Then real projects from Debian's sources: libyaml,
#                                  libxkbcommon, libxcrypt (with HEAPWRIGHT_QUICK only libyaml)
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
setup integrations

# logged STATUS LOG COMMAND...: the command ends with that status (! for any but 0). Its output goes to a log.
logged() {
    local status=0
    "${@:3}" >"$2" 2>&1 </dev/null || status=$?
    if [ "$1" = ! ]; then [ $status -ne 0 ]; else [ $status -eq "$1" ]; fi || { tail -n 60 "$2"; die "$(basename "$2"): ${*:3} ends with $status, not $1"; }
}
# line FILE TEXT: the number of the first line of a source that has the text.
line() { grep -nF -m1 -- "$2" "$1" | cut -d: -f1; }
# says LOG TEXT...: the log contains each of the patterns. says_not: it contains none of them.
says() { local text; for text in "${@:2}"; do grep -q -- "$text" "$1" || { cat "$1"; die "$1: nothing says '$text'"; }; done; }
says_not() { local text; for text in "${@:2}"; do ! grep -q -- "$text" "$1" || { cat "$1"; die "$1: something says '$text'"; }; done; }
# same WHAT WANTED GOT LOG
same() { [ "$2" = "$3" ] || { cat "$4"; die "$1: wanted '$2', got '$3'"; }; }

action() {
    local here=$ROOT/integrations/github-action source
    # The folder from which the action installs the command (ci/registry.sh tests the installation).
    source=$(sed -n 's|.*--path "$GITHUB_ACTION_PATH/\(.*\)"|\1|p' "$here/action.yml")
    [ -f "$here/$source/Cargo.toml" ] || die "the action installs from '$source', which does not exist"
    cd "$SCRATCH"
    mkdir bin
    ln -s "$HEAPWRIGHT_COMMAND" bin/heapwright
    # This gh prints its arguments. A pull request has a comment of an earlier run if there is a file `earlier`.
    printf '#!/bin/sh\ncase "$*" in\n*--paginate*) if [ -e earlier ]; then echo 55; fi ;;\n*) echo "gh $*" ;;\nesac\n' >bin/gh
    chmod +x bin/gh
    export PATH=$SCRATCH/bin:$PATH
    printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); block = NULL; return block != NULL; }\n' >wrong.c
    printf '#include <stdlib.h>\nint main(void) { char *volatile block = malloc(1234); free(block); return 0; }\n' >right.c
    cc -g wrong.c -o wrong
    cc -g right.c -o right

    # runs STATUS INPUT... (by Debian's Python, which has the package)
    runs() { rm -rf runner; mkdir runner; logged "$1" log /usr/bin/python3 "$here/dry_run.py" "$here/action.yml" runner "${@:2}"; }
    local summary=runner/GITHUB_STEP_SUMMARY lost='1,234 bytes in 1 block' request=(comment=true github.event_name=pull_request github.event.number=7)
    runs 99 command='./right && ./wrong' "${request[@]}"
    says log 'Result: failed with 99' "upload-sarif@v3 {'sarif_file': '.*heapwright.sarif', 'category': 'heapwright'}" \
        '^gh api .* POST repos/owner/project/issues/7/comments --field body=@.*summary.md$'
    says $summary "$lost" 'in main .*wrong.c:2'
    /usr/bin/python3 - runner/heapwright.*/heapwright.sarif <<'PY'
import json, sys
(result,) = json.load(open(sys.argv[1]))["runs"][0]["results"]
location = result["locations"][0]["physicalLocation"]
assert result["ruleId"] == "definitely-lost" and location["artifactLocation"]["uri"] == "wrong.c", result
PY
    runs 0 command=./wrong fail-on=none sarif=false comment=true github.event_name=push
    says $summary "$lost"
    says log '== Upload: skipped' '== Comment: skipped' '== output exit-code: 0'
    runs 0 command='./right | cat; ./right' comment=true github.event_name=pull_request
    says_not log '^gh '
    says_not $summary "$lost"
    touch earlier
    runs 0 command=./right "${request[@]}"
    says log '^gh api .* PATCH repos/owner/project/issues/comments/55 --field body=@.*summary.md$'
    printf 'leak:main\n' >known.supp
    runs 0 command=./wrong options='--suppress known.supp'
    runs 3 command='exit 3'
    runs 2 command=./right fail-on=everything
    says log 'everything'
    say "the action: a leak ends it with 99, SARIF, summary and comment; the others pass"
}

pytest() {
    # A copy: pip builds in the folder that it installs from.
    cp -r integrations/pytest-heapwright "$SCRATCH/plugin"
    cd "$SCRATCH"
    { python3 -m venv venv && venv/bin/pip install --quiet ./plugin; } >pip.log 2>&1 ||
        { say "skipped: pip cannot install pytest here ($(tail -n 1 pip.log))"; exit 0; }
    local include shop=plugin/tests/shop.c
    include=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    cp plugin/tests/*.py .
    cc -g -O1 -w -shared -fPIC -I"$include" plugin/tests/shop.c -o shop.so

    export COLUMNS=300 # so that pytest cuts no line
    local pytest=(venv/bin/python -m pytest -q -p no:cacheprovider)
    # fails WHAT LOG NAME...: these tests fail in the log, and no others.
    fails() { same "$1" "${*:3}" "$(sed -n 's/^FAILED [^:]*::\([^ ]*\) .*/\1/p' "$2" | sort | tr '\n' ' ' | sed 's/ $//')" "$2"; }
    logged 1 plain.log "${pytest[@]}" test_shop.py -k right
    fails "without --heapwright" plain.log test_right_as_expected

    logged 1 all.log "${pytest[@]}" --heapwright test_shop.py
    fails --heapwright all.log 'test_wrong_block[1]' 'test_wrong_block[2]' test_wrong_child test_wrong_fixture test_wrong_free \
        test_wrong_low_peak test_wrong_much_lost test_wrong_object test_wrong_peak test_wrong_write
    says all.log 'test_wrong_block\[1\] - heapwright: 1.2 KiB in 1 block lost' 'test_wrong_block\[2\] - heapwright: 2.4 KiB in 2 blocks lost' \
        'test_wrong_much_lost .*the limit is 1.0 KiB' 'test_wrong_peak .*30.0 MiB .*the limit is 24.0 MiB' \
        'test_wrong_free - heapwright: double-free' 'test_wrong_write - heapwright: buffer-overflow' \
        "^    fill .*shop.c:$(line "$shop" 'malloc(size)')\$" "^    forget .*shop.c:$(line "$shop" 'fill(PyLong')\$" '^    count_wrong .*shop.c:' \
        "^    free_twice .*shop.c:$(($(line "$shop" 'fill(40)') + 2))\$" '^    (Python)$'
    says_not all.log 'outside of tests'
    say "pytest --heapwright: 10 wrong tests fail by name, 8 right ones pass"

    logged 1 marked.log "${pytest[@]}" --heapwright-marked test_shop.py
    fails --heapwright-marked marked.log test_right_as_expected test_wrong_free test_wrong_low_peak test_wrong_much_lost test_wrong_peak
    say "pytest --heapwright-marked: those with a marker fail"

    logged 0 right.log "${pytest[@]}" --heapwright test_right.py
    logged 1 exit.log env AT_EXIT=1 "${pytest[@]}" --heapwright --heapwright-keep kept test_right.py
    says exit.log 'heapwright, outside of tests:' '1 passed'
    logged 1 kept.log "$HEAPWRIGHT_COMMAND" report --format gcc kept
    says kept.log 'double-free'
    # The folder now has records of an earlier run, so the command refuses it and reports none of their findings again.
    logged 2 again.log "${pytest[@]}" --heapwright --heapwright-keep kept test_right.py
    says_not again.log 'outside of tests'
    printf 'double-free:free_twice\n' >known.supp
    logged 0 known.log env AT_EXIT=1 "${pytest[@]}" --heapwright --heapwright-suppress known.supp test_right.py
    say "a finding outside of tests fails the run, once, unless it is suppressed"

    printf 'import pytest\n@pytest.mark.limit_leaks("much")\ndef test(): pass\n' >test_bad.py
    logged 4 bad.log "${pytest[@]}" --heapwright test_bad.py
    says bad.log "'much' is no size"
    logged 4 none.log env HEAPWRIGHT_COMMAND=/nowhere "${pytest[@]}" --heapwright test_right.py
    say "bad input: one line, exit code 4"
}

# listener NAME TESTS-THAT-FAIL LIBRARY...
listener() {
    local name=$1 status=0 command
    c++ -std=c++17 -g -O0 -I"$ROOT/include" -I"$ROOT/integrations/cpp" "$ROOT/integrations/cpp/tests/$name.cc" -o "$name" "${@:3}"
    logged 0 plain.log "./$name"
    "$HEAPWRIGHT_COMMAND" check --leaks no --fail-on none --keep "$name.records" -o report -- "./$name" >log 2>&1 || status=$?
    [ "$status" -ne 0 ] && [ "$status" -lt 99 ] || { cat log; die "$name ends with $status"; }
    # Catch2 breaks long lines.
    sed -i -e ':a' -e 'N' -e '$!ba' -e 's/record\.\n */record./g; s/\n *record\./ record./g' log
    same "the tests of $name that fail" "$2" "$(sed -n 's/^\[  FAILED  \] \(.*\) (.*/\1/p; s/^\(\(right\|wrong\) .*\)$/\1/p' log | tr '\n' ',')" log
    same "$name's leaks" 2 "$(grep -c 'heapwright: 1234 bytes in 1 block are lost' log)" log
    sed -n 's/.*stacks: heapwright \(diff [^ ]* [^ ]*\).*/\1/p' log >commands
    same "$name's commands" 2 "$(wc -l <commands)" log
    while read -r command; do
        # shellcheck disable=SC2086 # its words are the arguments
        (cd "$name.records" && "$HEAPWRIGHT_COMMAND" $command || true) >diff
        says diff 'definitely-lost: 1,234 bytes in 1 block' " in forget .*shop.h:$(line "$ROOT/integrations/cpp/tests/shop.h" ' forget()')"
    done <commands
    say "$name: two tests fail, each with its leak; the others pass, and all do without heapwright"
}
listeners() {
    cd "$SCRATCH"
    listener googletest "Wrong.block,Fixture.wrong," -lgtest
    listener catch2 "wrong block,wrong section,"

    command -v go >/dev/null || { say "go: not here, passed over"; return 0; }
    export CGO_CFLAGS="-O1 -g -I$ROOT/include"
    local log=$SCRATCH/log
    cd "$ROOT/integrations/go/shop"
    logged 0 "$log" go test .
    logged 0 "$log" env -C .. go test .
    logged ! "$log" go test -v -exec "$HEAPWRIGHT_COMMAND check --anyway --fail-on none -o $SCRATCH/report --" .
    same "Go's tests that fail" TestWrong "$(sed -n 's/^--- FAIL: \([A-Za-z]*\) .*/\1/p' "$log")" "$log"
    says "$log" 'heapwright: 1234 bytes in 1 blocks of C are lost'
    says "$SCRATCH/report" 'definitely-lost: 1,234 bytes in 1 block'
    say "go: the test that loses memory of C fails; the others pass, and all do without heapwright"
}

valgrind() {
    local how
    export SOURCES=$CARGO_TARGET_DIR/valgrind-projects PATH=$SCRATCH/bin:$PATH
    unset VALGRIND_OPTS
    "$HEAPWRIGHT_COMMAND" valgrind --install "$SCRATCH/bin" 2>/dev/null
    cp -r integrations/valgrind "$SCRATCH/project"
    cd "$SCRATCH"
    logged 0 probe.log command valgrind --tool=memcheck --help
    logged ! probe.log command valgrind --tool=helgrind --help

    logged 0 cmake.log cmake -S project -B with-cmake -DCMAKE_BUILD_TYPE=Debug
    logged 0 cmake.log cmake --build with-cmake
    logged 0 ctest.log env -C with-cmake ctest -T memcheck
    says ctest.log 'MemCheck: #2: wrong .*Defects: 1$' '^Memory Leak - 1$'
    says_not ctest.log 'MemCheck: #1: right'
    says with-cmake/Testing/Temporary/MemoryChecker.2.log '1,234 bytes in 1 blocks are definitely lost in loss record 1 of 1'
    say "ctest: a defect in the wrong test, none in the right one"

    logged 0 meson.log meson setup with-meson project --buildtype debug
    for how in '--setup=valgrind' '--wrap=valgrind --leak-check=full --error-exitcode=42'; do
        logged ! meson.log meson test -C with-meson "$how"
        says meson.log 'right *OK' 'wrong *FAIL.*exit status 42'
    done
    say "meson: the wrong test fails, the right one passes"

    logged 0 make.log make -s -C project right wrong right.valgrind CFLAGS=-g
    logged ! make.log make -s -C project wrong.valgrind
    [ ! -s project/right.log ] || die "the right test's log is not empty"
    says project/wrong.log 'definitely lost'
    say "make check-valgrind: the wrong test fails, the right one passes"

    # Real projects. The script counts calls of valgrind, because a project that finds no valgrind passes, too.
    mkdir noted
    printf '#!/bin/sh\necho "$*" >>"%s/calls"\nexec "%s/bin/valgrind" "$@"\n' "$SCRATCH" "$SCRATCH" >noted/valgrind
    chmod +x noted/valgrind
    PATH=$SCRATCH/noted:$PATH
    ! source_package libyaml || with_ctest "$SOURCES/libyaml"
    ! is_quick || return 0
    setup projects
    ! source_package libxkbcommon || with_meson "$SOURCES/libxkbcommon"
    ! source_package libxcrypt || with_autotools "$SOURCES/libxcrypt"
}
# called TIMES HOW: valgrind was called at least that often with these words.
called() { [ "$(grep -c -e "$2" calls)" -ge "$1" ] || { cat calls; die "valgrind was not called $1 times with $2"; }; : >calls; }
# libyaml's own test loses blocks, in eight places by valgrind 3.19: CTest must count eight.
with_ctest() {
    logged 0 libyaml.build cmake -S "$1" -B libyaml -DCMAKE_BUILD_TYPE=Debug
    logged 0 libyaml.build cmake --build libyaml --target test-version test-reader
    logged 0 libyaml.log env -C libyaml ctest -T memcheck
    called 2 --leak-check=yes
    says libyaml.log '100% tests passed, 0 tests failed out of 2' 'MemCheck: #2: reader .*Defects: 8$' '^Memory Leak - 8$'
    says_not libyaml.log 'MemCheck: #1: version'
    say "libyaml, ctest -T memcheck: 2 tests pass, 8 leaks in test-reader"
}
with_meson() {
    # (The other tests need an X server, or check the list of exported symbols.)
    local tests=(keysym keymap context filecomp rules-file rules-file-includes stringcomp buffercomp log utf8 atom state keyseq utils compose)
    logged 0 xkb.build meson setup xkb "$1" --buildtype debug -Denable-tools=false -Denable-x11=false -Denable-docs=false \
        -Denable-wayland=false -Denable-xkbregistry=false
    logged 0 xkb.log meson test -C xkb --setup valgrind "${tests[@]}"
    called ${#tests[@]} '--leak-check=full --track-origins=yes --gen-suppressions=all --error-exitcode=99'
    says xkb.log "^Ok: *${#tests[@]} *$" '^Fail: *0 *$'
    say "libxkbcommon, meson test --setup valgrind: ${#tests[@]} tests pass"
}
with_autotools() {
    # (The other tests hash for minutes.)
    local tests=(test/badsalt test/badsetting test/gensalt test/byteorder test/crypt-badargs test/alg-md5)
    cp -r "$1" libxcrypt
    logged 0 xcrypt.build env -C libxcrypt autoreconf -fi
    logged 0 xcrypt.build env -C libxcrypt ./configure --disable-shared CFLAGS='-g -O1'
    logged 0 xcrypt.log make -C libxcrypt -j2 check-valgrind TESTS="${tests[*]}"
    called ${#tests[@]} '--tool=memcheck --leak-check=full --show-reachable=no'
    says xcrypt.log "^# PASS:  ${#tests[@]}$"
    say "libxcrypt, make check-valgrind: ${#tests[@]} tests pass"
}

case ${1:-} in
    action | pytest | listeners | valgrind) the_command; HEAPWRIGHT_COMMAND=$(realpath "$HEAPWRIGHT_COMMAND"); "$@" ;;
    *) die "usage: ci/integrations.sh action|pytest|listeners|valgrind" ;;
esac
