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
