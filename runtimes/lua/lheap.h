/*
** What a Lua state keeps for its collected heap: part of its global_State.
**
**   heap, mutator      one heap a state, and the one thread that runs it
**   owed               what luaC_checkGC looks at; set on the slow path of allocation alone
**   epoch              the number of the last collection; threads that ran since have it in them
**   running            the thread that runs, and through its 'from' those that wait for it
**   weak               tables that the collection under way found weak, linked by 'gclist'
**   fixed              objects that are never collected (reserved words, names of metamethods)
**   finalizable        objects with a finalizer, the last one first
**   due                objects whose finalizer is to be called, in that order
**   strings            the short strings, without keeping them
**   spare              vectors that no table has any more, until the next collection
*/

#ifndef lheap_h
#define lheap_h

#include <stdint.h>

#include "heapwright_gc.h"
#include "lobject.h"

struct lua_State;

/* An object with a finalizer. Outside of the heap, so that the list does not keep it. */
typedef struct Finalizable {
  struct Finalizable *next, *previous;
  GCObject *object;
  struct Heapwright *owner;
} Finalizable;

/*
** Short strings, by open addressing: words of an address (48 bits) and a part of its string's hash. 0 is a
** free place, 1 one that had a string, which a search must pass over.
*/
typedef struct Strings {
  uint64_t *word;
  int size;  /* words: a power of two */
  int shift;  /* 32 - log2 of it */
  int used;  /* words that are not 0 */
} Strings;

typedef struct Heapwright {
  hw_gc_heap *heap;
  hw_gc_mutator *mutator;
  lu_byte owed;
  lu_byte stepping;  /* a collection that luaC_step began */
  lu_byte collected;  /* one has begun, and its results are to be looked at */
  lu_byte prepared;  /* one was prepared for, by luaC_step or luaC_fullgc */
  lu_byte given;  /* the factor is that of LUA_HEAPWRIGHT, whatever the program asks for */
  lu_byte generations;
  lu_byte stress;  /* it collects whenever it may */
  unsigned int factor;
  unsigned int epoch;
  lu_mem counted;  /* bytes in the heap: what lived, and what was allocated since */
  lu_mem steps;  /* bytes that collectgarbage("step") has paid for */
  size_t least;
  struct lua_State *running;
  GCObject *weak;
  GCObject **fixed;
  int nfixed, sizefixed;
  Finalizable *finalizable, *due, *batch;
  Finalizable **lastdue;
  Strings strings;
  Node *pending;  /* of a table that is resized: nothing leads there yet */
  void *spare[64];  /* vectors that tables are through with */
} Heapwright;

/*
** A thread's stack is stored to without barriers. So a thread says once between two collections that it
** is used: see lua_lock (llimits.h), which is what functions of the API begin with.
*/
#define luaC_dirty(L) \
	(l_likely((L)->epoch == G(L)->hw.epoch) ? cast_void(0) : luaC_dirty_(L))

void luaC_dirty_ (struct lua_State *L);

#endif
