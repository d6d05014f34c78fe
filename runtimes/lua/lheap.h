/*
** The data of a Lua state about its collected heap, a part of its global_State.
**
**   heap, mutator      one heap a state, and the one thread that runs it
**   owed               luaC_checkGC tests it; only the slow path of allocation sets it
**   epoch              the number of the last collection; threads that ran since then hold it
**   running            the running thread; its 'from' leads to the threads that wait for it
**   weak               tables that the collection under way found weak, linked by 'gclist'
**   fixed              objects that are never collected (reserved words, names of metamethods)
**   finalizable        objects with a finalizer, the last one first
**   due                objects whose finalizer is to be called, in the order of the calls
**   strings            the short strings, which this table does not keep alive
**   spare              vectors that no table needs any more, until the next collection
*/

#ifndef lheap_h
#define lheap_h

#include <stdint.h>

#include "heapwright_gc.h"
#include "lobject.h"

struct lua_State;

/* An object with a finalizer. The entry is outside of the heap, so that the list does not keep
   the object. */
typedef struct Finalizable {
  struct Finalizable *next, *previous;
  GCObject *object;
  struct Heapwright *owner;
} Finalizable;

/*
** Short strings, by open addressing. A word has the address of a string (48 bits) and a part of the
** string's hash. 0 is a free place. 1 is a place that had a string; a search passes over it.
*/
typedef struct Strings {
  uint64_t *word;
  int size;  /* words: a power of two */
  int shift;  /* 32 - log2 of size */
  int used;  /* words that are not 0 */
} Strings;

typedef struct Heapwright {
  hw_gc_heap *heap;
  hw_gc_mutator *mutator;
  lu_byte owed;
  lu_byte stepping;  /* a collection that luaC_step began */
  lu_byte collected;  /* a collection has begun, and 'settle' must follow */
  lu_byte prepared;  /* a collection was prepared, by luaC_step or luaC_fullgc */
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
  Node *pending;  /* new nodes of a table: nothing leads to them yet */
  void *spare[64];  /* vectors that tables no longer need */
} Heapwright;

/*
** Stores into a thread's stack have no barriers. So a thread reports once between two collections
** that it is used. See lua_lock (llimits.h), with which functions of the API begin.
*/
#define luaC_dirty(L) \
	(l_likely((L)->epoch == G(L)->hw.epoch) ? cast_void(0) : luaC_dirty_(L))

void luaC_dirty_ (struct lua_State *L);

#endif
