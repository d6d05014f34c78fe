/*
 * GoogleTest: a leak in a test makes the test fail.
 *
 *   int main(int argc, char **argv) {
 *       testing::InitGoogleTest(&argc, argv);
 *       testing::UnitTest::GetInstance()->listeners().Append(new heapwright::LeakListener);
 *       return RUN_ALL_TESTS();
 *   }
 *
 *   heapwright check --keep records -- ./tests
 *
 * Leaks in the fixture's SetUp and TearDown belong to the test. Leaks in the suite's SetUp and
 * TearDown belong to no test, and are in check's report.
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
