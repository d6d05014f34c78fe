/*
 * The frame of every misuse in this folder: what comes before it, what comes after it, and what the
 * program says, so that a judge (corpus/hardened/judge.py) can tell when the allocator stopped it.
 *
 *   misuse NAME SIZE bad|right cold|warm
 *
 *   before    neighbours, full of SECRET, on both sides of the victim
 *             warm: 10,000 blocks from the victim's own call sites first, 64 of them live
 *   "begin"   the next thing that happens is the misuse (in the right twin: nothing)
 *   "survived"
 *   after     the victim is freed; some rounds of blocks of its size: made, compared, freed;
 *             the neighbours are compared and freed
 *   "end"     and status 0
 *
 * Lines that a bad program may add: "harmless: WHY", when it has proved that its misuse changed no byte
 * and showed no byte that anybody had written; "harm: WHAT", when it has proved the opposite. A right twin
 * prints begin, survived, end, and nothing else.
 *
 * Nothing here prints through the heap: lines go out by write(2).
 */
#ifndef FRAME_H
#define FRAME_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>

/* What neighbours, and blocks that are freed before the misuse, are full of. */
constexpr unsigned char SECRET = 0x53;
/* What the victim is full of. */
constexpr unsigned char MINE = 0x11;

/* The calls that make a victim; each is a call site of its own, and none is a neighbour's. */
enum Form { MALLOC, CALLOC, NEW, NEW_ARRAY, NEW_ALIGNED, NEW_ARRAY_ALIGNED };
/* The alignment of the two last. */
constexpr size_t ALIGNMENT = 64;

struct Case {
    const char *group;
    const char *name;
    /* Whether it is run at 8 B, 4 KiB and 256 KiB; if not, at 8 B alone. */
    bool sized;
    void (*run)();
};

/* The parts: each file's own table, ended by a null name. */
extern const Case BOUNDS[], LIFETIME[], POINTERS[], CONTENTS[], FORMS[];

/* The arguments. Volatile, so that no compiler knows what comes of them. */
extern volatile size_t size;
extern volatile bool bad;

/* The parts of the frame, in the order in which a case calls them. */
char *victim(Form form, size_t n);              /* one block from the form's call site, not filled */
void right_free(Form form, char *p, size_t n);  /* gives it back as it was made */
char *prepare(Form form = MALLOC, size_t n = size); /* all that comes before; the victim, filled with MINE; "begin" */
void surroundings(Form form = MALLOC, size_t n = size); /* the same without a victim and without "begin" */
void begin();
void survived();
void settle(char *p, Form form = MALLOC, size_t n = size); /* all that comes after; `p` may be null */

char *neighbour(size_t n); /* a block from elsewhere, full of SECRET; compared and freed at the end */
void others(int count, size_t n); /* as many blocks of that size made and freed, one after the other */
void batch(int count, size_t n);  /* as many made, and then freed */
char *reused(char *p, size_t n); /* allocates until it gets `p` again, at most 64 times; the last one; all are neighbours */

void say(const char *line); /* one line on standard output */
void harmless(const char *why);
void harm(const char *what);
/* Whether the memory shows four bytes of SECRET in a row, or an address of the heap. */
bool shows(const char *p, size_t n);
/* Says what a read of the memory has shown; nothing in the right twin. */
void judge_read(bool shown);

inline void poke(char *p, int value) { *(volatile char *)p = (char)value; }
inline int peek(const char *p) { return *(const volatile char *)p; }
inline void poke_word(char *p)
{
    for (int i = 0; i < 8; i++)
        poke(p + i, 0x41);
}
#endif
