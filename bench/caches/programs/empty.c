// empty
//
// An empty program that reports its memory. The driver runs it without a preload and subtracts its
// memory from that of the other programs.

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
