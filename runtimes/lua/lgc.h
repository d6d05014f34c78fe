/*
** The collector's interface for the other files of Lua, on heapwright's collected heap. It replaces
** Lua's file of this name. lgc.c says how the collector works.
**
** Three things are inline: making an object, the test whether to collect, the barriers.
*/

#ifndef lgc_h
#define lgc_h

#include "lobject.h"
#include "lstate.h"

/* Not used: lstate.c sets it. */
#define WHITE0BIT	3

/* The bits of 'marked' that are left: the object has a finalizer; the table is listed as weak. */
#define FINALIZEDBIT	6
#define INWEAKBIT	0

#define bitmask(b)		(1<<(b))
#define tofinalize(x)		((x)->marked & bitmask(FINALIZEDBIT))

/* The heap has the colours. Lua never sees a dead object. */
#define iswhite(x)		0
#define isdead(g,v)		0
#define changewhite(x)		((void)0)
#define nw2black(x)		((void)0)
#define luaC_white(g)		0

/* The states that other files know. */
#define GCSpropagate	0
#define GCSpause	8

/* Parameters that the program sets; LUAI_GCPAUSE is the heap's factor. */
#define LUAI_GENMAJORMUL         100
#define LUAI_GENMINORMUL         20
#define LUAI_GCPAUSE    200
#define LUAI_GCMUL      100
#define LUAI_GCSTEPSIZE 13
#define getgcparam(p)	((p) * 4)
#define setgcparam(p,v)	((p) = (v) / 4)
#define isdecGCmodegen(g)	((g)->gckind == KGC_GEN)

/* The reasons why the collector does not run: bits of 'gcstp'. */
#define GCSTPUSR	1
#define GCSTPGC		2
#define GCSTPCLS	4
#define gcrunning(g)	((g)->gcstp == 0)

#define luaC_condGC(L,pre,pos) \
	{ if (l_unlikely(G(L)->hw.owed)) { pre; luaC_step(L); pos;}; \
	  condchangemem(L,pre,pos); }

#define luaC_checkGC(L)		luaC_condGC(L,(void)0,(void)0)

LUAI_FUNC void luaC_fix (lua_State *L, GCObject *o);
LUAI_FUNC void luaC_freeallobjects (lua_State *L);
LUAI_FUNC void luaC_step (lua_State *L);
LUAI_FUNC int luaC_userstep (lua_State *L, int kbytes);
LUAI_FUNC void luaC_fullgc (lua_State *L, int isemergency);
LUAI_FUNC void luaC_checkfinalizer (lua_State *L, GCObject *o, Table *mt);
LUAI_FUNC void luaC_changemode (lua_State *L, int newmode);
LUAI_FUNC void luaC_settarget (lua_State *L);

/* For lstate.c: states and threads. */
LUAI_FUNC global_State *luaC_newheap (lua_Alloc f, void *ud);
LUAI_FUNC void luaC_freeheap (global_State *g);
LUAI_FUNC lua_State *luaC_firstthread (global_State *g);

/* A short string of these bytes; for lstring.c. */
LUAI_FUNC TString *luaC_intern (lua_State *L, const char *str, size_t l, unsigned int h);

LUAI_FUNC void *luaC_slowalloc (lua_State *L, size_t sz, unsigned int kind);
LUAI_FUNC void *luaC_tryalloc (lua_State *L, size_t sz, unsigned int kind);
LUAI_FUNC void luaC_touch_ (lua_State *L, void *o);


/*
** Memory of the heap. As hw_gc_new, but with a slow path of our own: it checks whether a collection
** is owed.
*/
HW_GC_INLINE void *luaC_alloc (lua_State *L, size_t sz, unsigned int kind) {
  global_State *g = G(L);
  hw_gc_mutator *m = g->hw.mutator;
  g->hw.counted += sz;
  if (l_likely(sz <= 32768)) {
    hw_gc_region *region = (hw_gc_region *)(void *)
        ((char *)&m->regions[kind] + m->places[(sz + 7) / 8]);
    char *object = region->next;
    if (l_likely((size_t)object + region->slot <= (size_t)region->end)) {
      region->next = object + region->slot;
      return object;
    }
  }
  return luaC_slowalloc(L, sz, kind);
}

/*
** A new object. Strings hold no references. Prototypes have arrays in malloc, and are freed. All
** other memory that an object owns (arrays, nodes, stacks) is in the heap as well, and needs no
** freeing.
*/
HW_GC_INLINE GCObject *luaC_newobj (lua_State *L, int tt, size_t sz) {
  GCObject *o = cast(GCObject *, luaC_alloc(L, sz,
      (tt & 0x0F) == LUA_TSTRING ? HW_GC_LEAF
      : tt == LUA_VPROTO ? HW_GC_TRACED | HW_GC_FREED : HW_GC_TRACED));
  o->tt = cast_byte(tt);
  o->marked = 0;
  return o;
}

/* An array that an object owns. The owner's trace reports the values in it. */
#define luaC_newvector(L,n,t) \
	cast(t *, luaC_alloc(L, cast_sizet(n) * sizeof(t), HW_GC_LEAF))

/*
** Vectors that tables no longer need are used again until the next collection, because the heap
** frees nothing before. Nodes are listed by the logarithm of their number, and so are arrays whose
** size is a power of two.
*/
#define luaC_nodelist(lsize)	(lsize)
#define luaC_arraylist(n) \
	((n) != 0 && ((n) & ((n) - 1)) == 0 ? 32 + __builtin_ctz(n) : -1)

HW_GC_INLINE void *luaC_takespare (lua_State *L, int list, size_t bytes) {
  Heapwright *hw = &G(L)->hw;
  void *v;
  if (list < 0 || (v = hw->spare[list]) == NULL) return NULL;
  hw->spare[list] = *(void **)v;
  hw->counted += bytes;
  return v;
}

HW_GC_INLINE void luaC_givespare (lua_State *L, int list, void *v, size_t bytes) {
  Heapwright *hw = &G(L)->hw;
  if (v == NULL) return;
  hw->counted -= bytes;
  if (list < 0) return;
  *(void **)v = hw->spare[list];
  hw->spare[list] = v;
}

/* As luaC_newvector, but NULL without memory. */
#define luaC_tryvector(L,n,t) \
	cast(t *, luaC_tryalloc(L, cast_sizet(n) * sizeof(t), HW_GC_LEAF))

/*
** Reports a store into an object. If the object is old, the next minor collection traces it again.
** An object without a mark is young, or was reported already.
*/
HW_GC_INLINE void luaC_touch (lua_State *L, void *o) {
  hw_gc_mutator *m = G(L)->hw.mutator;
  size_t at = (size_t)o;
  if (l_unlikely(m->marks[at >> 7] >> (at >> 4 & 7) & 1) && m->barrier != 0)
    luaC_touch_(L, o);
}

#define luaC_barrier(L,p,v)  \
	(iscollectable(v) ? luaC_touch(L, p) : cast_void(0))
#define luaC_barrierback(L,p,v)  luaC_barrier(L,p,v)
#define luaC_objbarrier(L,p,o)  luaC_touch(L, p)

#endif
