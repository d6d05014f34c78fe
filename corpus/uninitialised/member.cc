// finds: stdout
// A constructor forgets a member.
#include "../corpus.h"

struct Shape {
    Shape(int width) : width(width) FIX(, height(1)) {}
    int width;
    int height;
};

int main()
{
    Shape *shape = hide(new Shape(3));
    printf("%d\n", shape->width * shape->height);
    delete shape;
    return 0;
}
