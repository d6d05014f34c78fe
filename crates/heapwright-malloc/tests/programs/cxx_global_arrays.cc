/* A library whose constructor makes arrays before the constructor of a preloaded library runs. Its
 * destructors free the arrays. */
struct Array {
    int *goods;
    explicit Array(int count) : goods(new int[count]()) {}
    ~Array() { delete[] goods; }
};
static Array small(1), large(1000);
static int *one = new int(7);
struct Last {
    ~Last() { delete one; }
};
static Last last;
extern "C" int of_global_arrays() { return small.goods[0] + large.goods[999] + *one; }
