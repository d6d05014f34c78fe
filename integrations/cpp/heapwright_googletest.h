/*
 * GoogleTest: a leak in a test is that test's failure.
 *
 *   int main(int argc, char **argv) {
 *       testing::InitGoogleTest(&argc, argv);
 *       testing::UnitTest::GetInstance()->listeners().Append(new heapwright::LeakListener);
 *       return RUN_ALL_TESTS();
 *   }
 *
 *   heapwright check --keep records -- ./tests
 *
 * What SetUp and TearDown of the fixture do belongs to the test; what those of the suite do belongs to none, and is in
 * check's report.
 */
#ifndef HEAPWRIGHT_GOOGLETEST_H
#define HEAPWRIGHT_GOOGLETEST_H

#include <gtest/gtest.h>

#include "heapwright_lost.h"

namespace heapwright {

class LeakListener : public testing::EmptyTestEventListener {
    Lost before;

    void OnTestStart(const testing::TestInfo &) override { before = lost(); }

    void OnTestEnd(const testing::TestInfo &) override {
        const std::string leak = describe(before, lost());
        if (!leak.empty())
            ADD_FAILURE() << leak;
    }
};

}  // namespace heapwright

#endif
