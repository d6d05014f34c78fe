#!/usr/bin/env bash
# The listeners for GoogleTest and Catch2, each on a program of which two tests lose a block and the others none. The
# two fail, under their names, and the commands that the failures give show the functions at fault. And the package for Go's
# tests, where Go is: a test that loses memory of C fails, and its like that does not passes.
#
#   ci/listeners.sh
#
#   HEAPWRIGHT_COMMAND  the command (default: built from this checkout)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
command_or_package c++ g++
packages libgtest-dev catch2
the_command
INCLUDE=(-I"$ROOT/include" -I"$ROOT/integrations/cpp")
cd "$SCRATCH"

cat >shop.h <<'CPP'
#include <cstdlib>
#include <vector>
static char *volatile block;
__attribute__((noinline)) static void forget() { block = static_cast<char *>(malloc(1234)); block = nullptr; }
__attribute__((noinline)) static void give_back() { block = static_cast<char *>(malloc(1234)); free(block); block = nullptr; }
/* What is still led to is not lost. */
static std::vector<int> *const kept = new std::vector<int>;
struct Shop {
    std::vector<int> *goods = new std::vector<int>(100);
    ~Shop() { delete goods; }
};
CPP
cat >googletest.cc <<'CPP'
#include "heapwright_googletest.h"
#include "shop.h"
struct Fixture : testing::Test, Shop {};
TEST(Right, block) { give_back(); }
TEST(Wrong, block) { forget(); }
TEST(Right, behind) { kept->push_back(1); }
TEST_F(Fixture, right) { EXPECT_EQ(goods->size(), 100u); }
TEST_F(Fixture, wrong) { forget(); }
int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    testing::UnitTest::GetInstance()->listeners().Append(new heapwright::LeakListener);
    return RUN_ALL_TESTS();
}
CPP
cat >catch2.cc <<'CPP'
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include "heapwright_catch2.h"
#include "shop.h"
TEST_CASE("right block") { give_back(); }
TEST_CASE("wrong block") { forget(); }
TEST_CASE_METHOD(Shop, "right behind") { kept->push_back(1); REQUIRE(goods->size() == 100); }
TEST_CASE_METHOD(Shop, "wrong section") {
    SECTION("gives back") { give_back(); }
    SECTION("forgets") { forget(); }
}
CPP


# program NAME TESTS-THAT-FAIL LIBRARY...
program() {
    local name=$1 wanted=$2 status=0 command
    c++ -std=c++17 -g -O0 "${INCLUDE[@]}" "$name.cc" -o "$name" "${@:3}"
    "./$name" >plain.log 2>&1 || { cat plain.log; die "$name fails without heapwright"; }
    "$HEAPWRIGHT_COMMAND" check --leaks no --fail-on none --keep "$name.records" -o report -- "./$name" >log 2>&1 || status=$?
    [ "$status" -ne 0 ] && [ "$status" -lt 99 ] || { cat log; die "$name ends with $status"; }
    # Catch2 breaks long lines.
    sed -i -e ':a' -e 'N' -e '$!ba' -e 's/record\.\n */record./g; s/\n *record\./ record./g' log
    [ "$(sed -n 's/^\[  FAILED  \] \(.*\) (.*/\1/p; s/^\(\(right\|wrong\) .*\)$/\1/p' log | tr '\n' ',')" = "$wanted" ] ||
        { cat log; die "$name: other tests fail than $wanted"; }
    [ "$(grep -c 'heapwright: 1234 bytes in 1 block are lost' log)" = 2 ] || { cat log; die "$name: other leaks are told"; }
    cd "$name.records"
    sed -n 's/.*stacks: heapwright \(diff [^ ]* [^ ]*\).*/\1/p' ../log >../commands
    while read -r command; do
        # shellcheck disable=SC2086 # its words are the arguments
        "$HEAPWRIGHT_COMMAND" $command >../diff || true
        grep -q 'definitely-lost: 1,234 bytes in 1 block' ../diff && grep -q ' in forget .*shop.h:4' ../diff || { cat ../diff; die "$name: $command shows another stack"; }
    done <../commands
    [ "$(wc -l <../commands)" = 2 ] || die "$name: not each leak has a command"
    cd ..
    say "$name: two tests fail, each with its leak; the others pass, and all do without heapwright"
}
program googletest "Wrong.block,Fixture.wrong," -lgtest
program catch2 "wrong block,wrong section,"

command -v go >/dev/null || { say "go: not here, passed over"; exit 0; }
mkdir go && cd go
cat >go.mod <<E
module shop

go 1.21

require heapwright v0.0.0

replace heapwright => $ROOT/integrations/go
E
cat >shop.go <<'G'
package shop

/*
#include <stdlib.h>
__attribute__((noinline)) static void forget(void) { char *volatile block = malloc(1234); block = NULL; }
__attribute__((noinline)) static void give_back(void) { free(malloc(1234)); }
*/
import "C"

func Forget()   { C.forget() }
func GiveBack() { C.give_back() }
G
cat >shop_test.go <<'G'
package shop

import (
	"heapwright"
	"testing"
)

func TestMain(m *testing.M) { heapwright.Main(m) }

func TestRight(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}

func TestWrong(t *testing.T) {
	heapwright.Leaks(t)
	Forget()
}

func TestBehind(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}
G
export CGO_CFLAGS="-O1 -g -I$ROOT/include" GOFLAGS=-mod=mod
go test . >plain.log 2>&1 && (cd "$ROOT/integrations/go" && go test .) >>plain.log 2>&1 || { cat plain.log; die "the Go tests fail without heapwright, or the package's own"; }
! go test -v -exec "$HEAPWRIGHT_COMMAND check --anyway --fail-on none -o $PWD/report --" . >log 2>&1 || { cat log; die "the wrong Go test passes"; }
[ "$(sed -n 's/^--- FAIL: \([A-Za-z]*\) .*/\1/p' log)" = TestWrong ] && grep -q 'heapwright: 1234 bytes in 1 blocks of C are lost' log ||
    { cat log; die "go: other tests fail than TestWrong"; }
grep -q 'definitely-lost: 1,234 bytes in 1 block' report || { cat report; die "go: the report has not the leak"; }
say "go: the test that loses memory of C fails; the others pass, and all do without heapwright"
