// The program itself defines the C library's words about restartable sequences, which valgrind lacks: a program's symbols
// come before its libraries'. The area is a thread-local variable that says "CPU 0" for ever. So the sequences of per-CPU
// caches run without interruptions, and can be counted. For one thread only.
#include <stddef.h>

struct area {
    unsigned cpu_id_start, cpu_id;
    unsigned long long rseq_cs;
    unsigned flags, node_id, mm_cid;
} __attribute__((aligned(32)));

__thread struct area golden_area = {0, 0, 0, 0, 0, 0};
const unsigned __rseq_size = 20;
// The area's distance from the thread pointer, which the linker knows and C cannot say.
__asm__(".pushsection .data.rel.ro, \"aw\"\n"
        ".balign 8\n"
        ".globl __rseq_offset\n"
        ".type __rseq_offset, @object\n"
        ".size __rseq_offset, 8\n"
        "__rseq_offset: .quad golden_area@tpoff\n"
        ".popsection\n");
