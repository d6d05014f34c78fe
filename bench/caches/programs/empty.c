// empty
//
// A program that does nothing but say how much memory that takes. The driver runs
// it without a preload and takes that off what the others have.

#include "result.h"

int main(int argc, char **argv) {
    (void)argv;
    program_name = "empty";
    if (argc != 1)
        die(2, "usage: empty");
    begin();
    result_begin(1);
    result_end();
    return 0;
}
