// finds: buffer-overflow
// words: 96-byte
// reserve makes room for three, and four are written.
#include "corpus.h"
#include <vector>

struct Point { double x, y, z; long id; };

int main()
{
    std::vector<Point> points;
    points.reserve(3);
    volatile Point *raw = hide(points.data());
    for (int i = 0; i < 3 BUG(+ 1); i++)
        raw[i].id = i;
    return 0;
}
