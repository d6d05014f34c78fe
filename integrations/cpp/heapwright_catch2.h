/*
 * Catch2, version 2: a leak in a test case makes the test case fail.
 *
 *   #include <catch2/catch.hpp>
 *   #include "heapwright_catch2.h"        // in one file of the program
 *
 *   heapwright check --keep records -- ./tests
 *
 * A test case runs once for each of its leaf sections, and each run is checked. The check comes at
 * the end of the outermost section. This is after the destructor of the fixture, and the last
 * moment at which a failure still counts.
 */
#ifndef HEAPWRIGHT_CATCH2_H
#define HEAPWRIGHT_CATCH2_H

#include <catch2/catch.hpp>

#include "heapwright_lost.h"

namespace heapwright {

class LeakListener : public Catch::TestEventListenerBase {
    Lost before;
    int depth = 0;

  public:
    using TestEventListenerBase::TestEventListenerBase;

    void sectionStarting(const Catch::SectionInfo &info) override {
        TestEventListenerBase::sectionStarting(info);
        if (depth++ == 0)
            before = lost();
    }

    void sectionEnded(const Catch::SectionStats &stats) override {
        const std::string leak = --depth == 0 ? describe(before, lost()) : "";
        if (!leak.empty())
            FAIL_CHECK(leak);
        TestEventListenerBase::sectionEnded(stats);
    }
};

CATCH_REGISTER_LISTENER(LeakListener)

}  // namespace heapwright

#endif
