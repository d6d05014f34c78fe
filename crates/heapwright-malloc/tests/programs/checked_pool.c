/* A checked pool of heapwright.h. Makes a mistake, if the argument names one. */
#include "check.h"
#include <heapwright.h>

int main(int argc, char **argv)
{
    hw_pool_options options = {.name = "node", .limit = 1000, .checked = true};
    hw_pool *pool = hw_pool_create_with(40, 64, &options, sizeof options);
    hw_pool *other = hw_pool_create_with(40, 64, &options, sizeof options);
    CHECK(pool != NULL && other != NULL);
    static void *all[1000];
    for (int i = 0; i < 1000; i++) {
        all[i] = hw_pool_alloc(pool);
        CHECK(all[i] != NULL && is_aligned(all[i], 64) && hw_pool_contains(pool, all[i]));
    }
    errno = 0;
    CHECK(hw_pool_alloc(pool) == NULL && errno == ENOMEM);
    for (int i = 0; i < 1000; i += 2)
        hw_pool_free(pool, all[i]);
    hw_pool_statistics stats;
    CHECK(hw_pool_stats(pool, &stats, sizeof stats) == sizeof stats && stats.live == 500);
    CHECK(!hw_pool_contains(pool, all[0]) && hw_pool_contains(pool, all[1]));
    CHECK(!hw_pool_contains(other, all[1]));
    int local;
    if (argc > 1 && strcmp(argv[1], "twice") == 0)
        hw_pool_free(pool, all[2]);
    else if (argc > 1 && strcmp(argv[1], "stack") == 0)
        hw_pool_free(pool, &local);
    else if (argc > 1 && strcmp(argv[1], "other") == 0)
        hw_pool_free(other, all[1]);
    else if (argc > 1)
        hw_pool_free(pool, malloc(40));
    hw_pool_reset(pool, 0);
    CHECK(hw_pool_stats(pool, &stats, sizeof stats) == sizeof stats && stats.live == 0);
    hw_pool_destroy(pool);
    hw_pool_destroy(other);
    options.checked = false;
    hw_pool *plain = hw_pool_create_with(40, 64, &options, sizeof options);
    CHECK(plain != NULL && hw_pool_alloc(plain) != NULL);
    hw_pool_destroy(plain);
    errno = 0;
    CHECK(hw_pool_create_with(40, 3, &options, sizeof options) == NULL && errno == EINVAL);
    errno = 0;
    CHECK(hw_pool_create_with(40, 8, &options, 0) == NULL && errno == EINVAL);
    return 0;
}
