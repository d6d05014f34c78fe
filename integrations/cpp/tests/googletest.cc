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
