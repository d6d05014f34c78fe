/*
** Lua's collector, on heapwright's collected heap. It replaces Lua's file of this name.
**
**   Lua                                        here
**   objects in lists, malloc each              objects of the heap; no list, 8 bytes less each
**   arrays, nodes, stacks, CallInfos: malloc   leaves of the heap, reported by their owner's trace
**   white, gray, black, ages                   the heap's marks; a barrier is luaC_touch
**   atomic, sweep                              one pause marks; the sweep looks at bitmaps alone
**   weak tables                                weak slots and ephemerons of the heap; afterwards
**                                              'settle' removes the dead entries of such tables
**   short strings                              a table that keeps nothing, looked through after marking
**   finalizers                                 the heap's, put into Lua's order ('gather')
**
** A collection happens in luaC_step, in luaC_fullgc, and at the heap's limit in an allocation, as
** Lua's emergency collections do. All other allocations defer collections, so a new object need not
** be on the stack before luaC_checkGC.
**
** A collection is never incremental. A weak slot must hold a reference until it is cleared, and a
** Lua program may store a number there between two steps. Collections are minor if that pays (the
** heap decides).
**
** Threads. A stack has no barrier. When a collection begins, it touches the running thread and all
** threads that wait for it. Other threads report by luaC_dirty that they are used, once a
** collection. A thread's open upvalues are touched with the thread: their values lie in its stack,
** and they may outlive the thread. An open upvalue keeps the stack as well, by an address within
** it, so a thread that dies closes nothing.
*/

#define lgc_c
#define LUA_CORE

#include "lprefix.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua.h"

#include "ldebug.h"
#include "ldo.h"
#include "lfunc.h"
#include "lgc.h"
#include "lmem.h"
#include "lobject.h"
#include "lstate.h"
#include "lstring.h"
#include "ltable.h"
#include "ltm.h"

/* lua_getextraspace (lua.h) relies on the place of extra_. */
typedef char extra_space_is_where_lua_h_says[offsetof(lua_State, extra_) == 8 ? 1 : -1];

#define gnodelast(h)	gnode(h, cast_sizet(sizenode(h)))

/* The value of an ephemeron that has only a key. */
static void *nothing = NULL;


/*
** {======================================================
** Tracing. Any thread of the heap may trace, several at a time.
** =======================================================
*/

HW_GC_INLINE void marktv (hw_gc_tracer *t, const TValue *v) {
  /* Without a branch, because nothing predicts which values are objects. */
  hw_gc_mark(t, iscollectable(v) ? (void *)gcvalue(v) : NULL);
}

#define markgc(t,o)	hw_gc_mark(t, o)

/* As in Lua: a key whose value is nil is not kept, but its place is. */
static void clearkey (Node *n) {
  if (keyiscollectable(n))
    setdeadkey(n);
}

/* An object that may be missing from a weak table: not a number, and not a string. */
#define isweak(tt)  (((tt) & BIT_ISCOLLECTABLE) && novariant(tt) != LUA_TSTRING)

static void markweakvalue (hw_gc_tracer *t, TValue *v) {
  if (isweak(rawtt(v)))
    hw_gc_mark_weak(t, (void **)&val_(v).gc);
  else
    marktv(t, v);
}

/* Most keys are names of fields, which have their mark already. */
HW_GC_INLINE void marknodekey (hw_gc_tracer *t, const uint8_t *marks, const Node *n) {
  if (keyiscollectable(n)) {
    size_t at = (size_t)gckey(n);
    if (!(marks[at >> 7] >> (at >> 4 & 7) & 1)) hw_gc_mark(t, gckey(n));
  }
}

static void traceweaktable (hw_gc_tracer *t, global_State *g, Table *h,
                            int weakkey, int weakvalue) {
  Node *n;
  unsigned int i, asize = luaH_realasize(h);
  /* Two threads may trace the table at once: one of them puts it into the list. */
  if (!(__atomic_fetch_or(&h->marked, bitmask(INWEAKBIT), __ATOMIC_ACQ_REL)
        & bitmask(INWEAKBIT))) {
    GCObject *first = __atomic_load_n(&g->hw.weak, __ATOMIC_RELAXED);
    do h->gclist = first;
    while (!__atomic_compare_exchange_n(&g->hw.weak, &first, obj2gco(h), 1,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED));
  }
  for (i = 0; i < asize; i++) {
    if (weakvalue) markweakvalue(t, &h->array[i]);
    else marktv(t, &h->array[i]);
  }
  for (n = gnode(h, 0); n < gnodelast(h); n++) {
    if (isempty(gval(n)))
      clearkey(n);
    else if (weakkey && isweak(keytt(n))) {
      if (!weakvalue && iscollectable(gval(n)))
        hw_gc_mark_ephemeron(t, (void **)&gckey(n), (void **)&val_(gval(n)).gc);
      else {
        hw_gc_mark_ephemeron(t, (void **)&gckey(n), &nothing);
        if (weakvalue) markweakvalue(t, gval(n));
      }
    }
    else if (weakkey && weakvalue && isweak(rawtt(gval(n)))) {
      /* A string, as a key, is kept for as long as the value lives. */
      if (keyiscollectable(n))
        hw_gc_mark_ephemeron(t, (void **)&val_(gval(n)).gc, (void **)&gckey(n));
      markweakvalue(t, gval(n));
    }
    else {
      marknodekey(t, g->hw.mutator->marks, n);
      if (weakvalue) markweakvalue(t, gval(n));
      else marktv(t, gval(n));
    }
  }
}

static void tracetable (hw_gc_tracer *t, global_State *g, Table *h) {
  const uint8_t *marks = g->hw.mutator->marks;
  Node *n, *last;
  TValue *v, *end;
  if (h->array) markgc(t, h->array);
  if (!isdummy(h)) markgc(t, h->node);
  if (h->metatable) {
    Table *mt = h->metatable;
    markgc(t, mt);
    if (!(mt->flags & (1u << TM_MODE))) {  /* may have a mode? */
      const TValue *mode = luaH_getshortstr(mt, g->tmname[TM_MODE]);
      if (ttisstring(mode)) {
        int weakkey = strchr(svalue(mode), 'k') != NULL;
        int weakvalue = strchr(svalue(mode), 'v') != NULL;
        if (weakkey || weakvalue) {
          traceweaktable(t, g, h, weakkey, weakvalue);
          return;
        }
      }
    }
  }
  for (v = h->array, end = v + luaH_realasize(h); v < end; v++)
    marktv(t, v);
  if (isdummy(h)) return;
  for (n = gnode(h, 0), last = gnodelast(h); n < last; n++) {
    if (isempty(gval(n)))
      clearkey(n);
    else {
      marknodekey(t, marks, n);
      marktv(t, gval(n));
    }
  }
}

static void traceproto (hw_gc_tracer *t, Proto *f) {
  int i;
  markgc(t, f->source);
  for (i = 0; i < f->sizek; i++) marktv(t, &f->k[i]);
  for (i = 0; i < f->sizeupvalues; i++) markgc(t, f->upvalues[i].name);
  for (i = 0; i < f->sizep; i++) markgc(t, f->p[i]);
  for (i = 0; i < f->sizelocvars; i++) markgc(t, f->locvars[i].varname);
}

static void tracethread (hw_gc_tracer *t, lua_State *th) {
  UpVal *uv;
  CallInfo *ci;
  StkId o = th->stack;
  if (o == NULL) return;  /* not built yet */
  markgc(t, th->stack);
  for (ci = th->base_ci.next; ci != NULL; ci = ci->next) markgc(t, ci);
  for (; o < th->top; o++) marktv(t, s2v(o));
  /* Slots above the top may become part of a frame without a store. */
  for (; o < th->stack_last + EXTRA_STACK; o++) setnilvalue(s2v(o));
  for (uv = th->openupval; uv != NULL; uv = uv->u.open.next) markgc(t, uv);
}

static void trace (hw_gc_tracer *t, void *object, void *data) {
  global_State *g = cast(global_State *, data);
  GCObject *o = cast(GCObject *, object);
  int i;
  switch (o->tt) {
    case LUA_VTABLE: tracetable(t, g, gco2t(o)); break;
    case LUA_VUPVAL: {
      UpVal *uv = gco2upv(o);
      if (uv->v == NULL) break;
      if (upisopen(uv)) hw_gc_mark_maybe(t, uv->v);  /* its thread's stack */
      marktv(t, uv->v);
      break;
    }
    case LUA_VLCL: {
      LClosure *cl = gco2lcl(o);
      markgc(t, cl->p);
      for (i = 0; i < cl->nupvalues; i++) markgc(t, cl->upvals[i]);
      break;
    }
    case LUA_VCCL: {
      CClosure *cl = gco2ccl(o);
      for (i = 0; i < cl->nupvalues; i++) marktv(t, &cl->upvalue[i]);
      break;
    }
    case LUA_VUSERDATA: {
      Udata *u = gco2u(o);
      markgc(t, u->metatable);
      for (i = 0; i < u->nuvalue; i++) marktv(t, &u->uv[i].uv);
      break;
    }
    case LUA_VPROTO: traceproto(t, gco2p(o)); break;
    case LUA_VTHREAD: tracethread(t, gco2th(o)); break;
    default: break;  /* not filled in yet */
  }
}

/* Removes the entries of a weak table whose key or value died. */
static void settletable (Table *h) {
  Node *n;
  unsigned int i, asize = luaH_realasize(h);
  h->marked &= cast_byte(~bitmask(INWEAKBIT));
  for (i = 0; i < asize; i++) {
    TValue *v = &h->array[i];
    if (iscollectable(v) && gcvalue(v) == NULL) setempty(v);
  }
  for (n = gnode(h, 0); n < gnodelast(h); n++) {
    if (iscollectable(gval(n)) && gcvalue(gval(n)) == NULL) setempty(gval(n));
    if (keyiscollectable(n) && gckey(n) == NULL) setempty(gval(n));
    if (isempty(gval(n))) clearkey(n);
  }
}

/* Settles the weak tables that the last collection traced. */
static void settleweak (Heapwright *hw) {
  GCObject *o;
  for (o = hw->weak; o != NULL; o = gco2t(o)->gclist) settletable(gco2t(o));
  hw->weak = NULL;
}

static void roots (hw_gc_tracer *t, void *data) {
  global_State *g = cast(global_State *, data);
  Heapwright *hw = &g->hw;
  Finalizable *f;
  lua_State *th;
  int i;
  if (!hw->collected && !hw->prepared) {  /* in an allocation, at the limit */
    memset(hw->spare, 0, sizeof hw->spare);
  }
  hw->collected = 1;
  markgc(t, g->mainthread);
  for (th = hw->running; th != NULL; th = th->from) markgc(t, th);
  marktv(t, &g->l_registry);
  for (i = 0; i < LUA_NUMTAGS; i++) markgc(t, g->mt[i]);
  for (i = 0; i < hw->nfixed; i++) markgc(t, hw->fixed[i]);
  for (f = hw->due; f != NULL; f = f->next) markgc(t, f->object);
  markgc(t, hw->pending);
}

static void freed (void *object, size_t size, void *data) {
  lua_State nobody;  /* for its global_State */
  (void)size;
  nobody.l_G = cast(global_State *, data);
  luaF_freeproto(&nobody, cast(Proto *, object));
}

static const char *type_name (const void *object, void *data) {
  int tt = cast(const GCObject *, object)->tt;
  (void)data;
  return novariant(tt) < LUA_TOTALTYPES - 1 ? ttypename(novariant(tt)) : "?";
}

/* }====================================================== */


/*
** {======================================================
** Short strings
** =======================================================
*/

/* The place where the search for a hash begins, and the part of the hash in a word. */
#define place(tb,h)	cast_int(((h) * 0x9E3779B1u) >> (tb)->shift)
#define tag(h)		((uint64_t)((h) & 0xffff) << 48)
#define WAS		1  /* a word that had a string */
#define ADDRESS		(((uint64_t)1 << 48) - 1)
#define stringof(w)	((TString *)(uintptr_t)((w) & ADDRESS))

/* Makes a table with room for 'live' strings and as many more. False: there is no memory. */
static int rebuild (global_State *g, int live) {
  Strings *tb = &g->hw.strings, old = *tb;
  int i, size = 128, shift = 25;
  uint64_t *word;
  while (size / 2 <= live) {
    if (shift == 2) return 0;
    size *= 2; shift--;
  }
  word = cast(uint64_t *, (*g->frealloc)(g->ud, NULL, 0, size * sizeof(*word)));
  if (word == NULL) return 0;
  memset(word, 0, size * sizeof(*word));
  tb->word = word; tb->size = size; tb->shift = shift; tb->used = 0;
  for (i = 0; i < old.size; i++) {
    uint64_t w = old.word[i];
    if (w > WAS) {
      int at = place(tb, stringof(w)->hash);
      while (word[at] != 0) at = (at + 1) & (size - 1);
      word[at] = w;
      tb->used++;
    }
  }
  if (old.size > 0) (*g->frealloc)(g->ud, old.word, old.size * sizeof(*word), 0);
  return 1;
}

/* Makes room for one more string. */
static void morestrings (lua_State *L) {
  Strings *tb = &G(L)->hw.strings;
  int i, live = 0;
  for (i = 0; i < tb->size; i++) live += (tb->word[i] > WAS);
  if (!rebuild(G(L), live) && tb->used >= tb->size - 1)
    luaM_error(L);
}

TString *luaC_intern (lua_State *L, const char *str, size_t l, unsigned int h) {
  Strings *tb = &G(L)->hw.strings;
  const uint64_t wanted = tag(h);
  unsigned int epoch = G(L)->hw.epoch;
  TString *ts;
  int at, was = -1;
  uint64_t w;
  if (l_unlikely(tb->used >= tb->size / 8 * 5)) morestrings(L);
  for (at = place(tb, h); (w = tb->word[at]) != 0; at = (at + 1) & (tb->size - 1)) {
    if (w == WAS) was = at;
    else if (((w ^ wanted) & ~ADDRESS) == 0) {
      ts = stringof(w);
      if (ts->shrlen == l && memcmp(str, getstr(ts), l) == 0) return ts;
    }
  }
  ts = gco2ts(luaC_newobj(L, LUA_VSHRSTR, sizelstring(l)));
  ts->hash = h;
  ts->extra = 0;
  ts->shrlen = cast_byte(l);
  memcpy(getstr(ts), str, l);
  getstr(ts)[l] = '\0';
  if (l_unlikely(epoch != G(L)->hw.epoch)) {  /* at the limit it collected: words may have moved */
    was = -1;
    for (at = place(tb, h); tb->word[at] != 0; at = (at + 1) & (tb->size - 1)) ;
  }
  if (was >= 0) at = was;
  else tb->used++;
  tb->word[at] = wanted | (uintptr_t)ts;
  return ts;
}

/*
** Forgets the strings that a collection found dead. After the marking step of luaC_step, marks tell
** the live strings, because nothing was swept. Other collections have swept. 'fresh' was allocated
** since the collection.
*/
static void forgetstrings (global_State *g, const void *fresh) {
  Strings *tb = &g->hw.strings;
  const uint8_t *marks = g->hw.mutator->marks;
  uint64_t next = tb->word[0];  /* a search continues there behind the last word */
  int i, live = 0, used = 0;
  for (i = tb->size - 1; i >= 0; i--) {
    uint64_t w = tb->word[i];
    if (w > WAS) {
      size_t at = (size_t)stringof(w);
      int lives = g->hw.stepping ? marks[at >> 7] >> (at >> 4 & 7) & 1
                : (void *)at != fresh && hw_gc_find(g->hw.heap, (void *)at) != NULL;
      if (lives) live++;
      else w = WAS;
    }
    if (w == WAS && next == 0) w = 0;  /* no search continues from here */
    used += (w != 0);
    tb->word[i] = next = w;
  }
  tb->used = used;
  if (live < tb->size / 8) rebuild(g, live);
}

/* }====================================================== */


/*
** {======================================================
** Finalizers
** =======================================================
*/

static void takeout (Heapwright *hw, Finalizable *f) {
  if (f->next) f->next->previous = f->previous;
  if (f->previous) f->previous->next = f->next;
  else hw->finalizable = f->next;
}

/*
** The heap found the object dead, and kept it once more. The heap calls finalizers in the order of
** registration. Lua's order is the reverse.
*/
static void finalized (void *object, void *context) {
  Finalizable *f = cast(Finalizable *, context);
  Heapwright *hw = f->owner;
  (void)object;
  takeout(hw, f);
  f->next = hw->batch;
  hw->batch = f;
}

static void append (Heapwright *hw, Finalizable *f) {
  f->next = NULL;
  f->previous = NULL;
  *hw->lastdue = f;
  hw->lastdue = &f->next;
}

/* Appends the objects that the last collection found to those that are due already. */
static void gather (Heapwright *hw) {
  Finalizable *f;
  hw->batch = NULL;
  hw_gc_run_finalizers(hw->mutator, SIZE_MAX);
  while ((f = hw->batch) != NULL) {
    hw->batch = f->next;
    append(hw, f);
  }
}

void luaC_checkfinalizer (lua_State *L, GCObject *o, Table *mt) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  Finalizable *f;
  if (tofinalize(o) || gfasttm(g, mt, TM_GC) == NULL || (g->gcstp & GCSTPCLS))
    return;
  f = luaM_new(L, Finalizable);
  f->object = o;
  f->owner = hw;
  if (!hw_gc_finalize(hw->mutator, o, finalized, f)) {
    luaM_free(L, f);
    luaM_error(L);
  }
  f->previous = NULL;
  f->next = hw->finalizable;
  if (f->next) f->next->previous = f;
  hw->finalizable = f;
  o->marked |= bitmask(FINALIZEDBIT);
}

static void dothecall (lua_State *L, void *ud) {
  UNUSED(ud);
  luaD_callnoyield(L, L->top - 2, 0);
}

/* Calls the finalizer that is due first. */
static void callone (lua_State *L) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  Finalizable *f = hw->due;
  GCObject *o = f->object;
  const TValue *tm;
  TValue v;
  if ((hw->due = f->next) == NULL) hw->lastdue = &hw->due;
  luaM_free(L, f);
  o->marked &= cast_byte(~bitmask(FINALIZEDBIT));  /* it may get another finalizer */
  setgcovalue(L, &v, o);
  tm = luaT_gettmbyobj(L, &v, TM_GC);
  if (!notm(tm)) {
    int status;
    lu_byte oldah = L->allowhook;
    int oldgcstp = g->gcstp;
    g->gcstp |= GCSTPGC;
    L->allowhook = 0;
    setobj2s(L, L->top, tm);
    setobj2s(L, L->top + 1, &v);
    L->top += 2;
    L->ci->callstatus |= CIST_FIN;
    status = luaD_pcall(L, dothecall, NULL, savestack(L, L->top - 2), 0);
    L->ci->callstatus &= ~CIST_FIN;
    L->allowhook = oldah;
    g->gcstp = cast_byte(oldgcstp);
    if (l_unlikely(status != LUA_OK)) {
      luaE_warnerror(L, "__gc");
      L->top--;
    }
  }
}

static void callall (lua_State *L) {
  while (G(L)->hw.due) callone(L);
}

/* }====================================================== */


/*
** {======================================================
** Collections
** =======================================================
*/

void luaC_touch_ (lua_State *L, void *o) {
  hw_gc_touch(G(L)->hw.mutator, o);
}

void luaC_dirty_ (lua_State *L) {
  UpVal *uv;
  L->epoch = G(L)->hw.epoch;
  luaC_touch(L, L);
  for (uv = L->openupval; uv != NULL; uv = uv->u.open.next) luaC_touch(L, uv);
}

/* A collection is about to begin. */
static void prepare (lua_State *L, int isemergency) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  lua_State *th;
  if (!isemergency) luaD_shrinkstack(L);
  luaS_clearcache(g);
  luaC_dirty_(L);
  for (th = hw->running; th != NULL; th = th->from) luaC_dirty_(th);
  memset(hw->spare, 0, sizeof hw->spare);  /* they are garbage now */
  hw->prepared = 1;
}

/* Ends a collection that has marked. 'fresh' was allocated since, or is NULL. */
static void settle (global_State *g, const void *fresh) {
  Heapwright *hw = &g->hw;
  hw_gc_statistics s;
  hw->collected = hw->prepared = 0;
  settleweak(hw);
  forgetstrings(g, fresh);
  hw_gc_stats(hw->heap, &s, offsetof(hw_gc_statistics, goal_bytes));
  hw->counted = s.live_bytes;
  hw->epoch++;
  hw->steps = 0;
  hw->owed = hw->stress;
  /* While the state closes, luaC_freeallobjects has listed all, and each is freed when it was
     called. */
  if (!(g->gcstp & GCSTPCLS)) gather(hw);
}

/*
** Collects. In generational mode the heap chooses a minor or a major collection. Otherwise the
** collection is a major one.
*/
static void collect (lua_State *L) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  if (hw->generations && g->gckind == KGC_INC) {
    luaC_fullgc(L, 0);
    return;
  }
  prepare(L, 0);
  hw->stepping = 1;
  /* Without time left, the step marks as long as that takes, and sweeps nothing. */
  hw_gc_step(hw->mutator, 1);
  if (hw->collected) settle(g, NULL);
  hw->stepping = 0;
  /* Sweeps at once. Until a page is swept, each store into its objects is remembered again. */
  hw_gc_step(hw->mutator, UINT64_MAX / 2);
  if (hw->collected) settle(g, NULL);  /* another collection was due */
  callall(L);
}

void luaC_step (lua_State *L) {
  if (gcrunning(G(L))) {
    if (G(L)->hw.stress) hw_gc_ask(G(L)->hw.mutator);
    collect(L);
  }
}

/*
** collectgarbage("step"). Collections are not incremental, so steps are added up until they would
** have traced the whole heap. Then a collection runs. In generational mode each step is a
** collection. Returns whether a collection ran.
*/
int luaC_userstep (lua_State *L, int kbytes) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  lu_mem bytes = kbytes > 0 ? cast(lu_mem, kbytes) << 10
               : cast(lu_mem, 1) << (g->gcstepsize < 30 ? g->gcstepsize : 30);
  hw->steps += bytes / 100 * (getgcparam(g->gcstepmul) | 1);
  if (g->gckind == KGC_INC && hw->steps < hw->counted) return 0;
  hw_gc_ask(hw->mutator);
  collect(L);
  return 1;
}

void luaC_fullgc (lua_State *L, int isemergency) {
  global_State *g = G(L);
  prepare(L, isemergency);
  hw_gc_collect(g->hw.mutator);
  if (g->hw.collected) settle(g, NULL);
  if (!isemergency) callall(L);
}

void *luaC_tryalloc (lua_State *L, size_t sz, unsigned int kind) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  void *o = hw_gc_alloc(hw->mutator, sz, kind);
  if (l_unlikely(o == NULL)) {  /* at the limit: an emergency collection */
    hw_gc_resume(hw->mutator);
    o = hw_gc_alloc(hw->mutator, sz, kind);
    hw_gc_defer(hw->mutator);
    if (hw->collected) settle(g, o);
  }
  hw->owed = hw->stress | hw_gc_owed(hw->mutator);
  return o;
}

void *luaC_slowalloc (lua_State *L, size_t sz, unsigned int kind) {
  void *o = luaC_tryalloc(L, sz, kind);
  if (l_unlikely(o == NULL)) {
    G(L)->hw.counted -= sz;
    luaM_error(L);
  }
  return o;
}

void luaC_fix (lua_State *L, GCObject *o) {
  Heapwright *hw = &G(L)->hw;
  luaM_growvector(L, hw->fixed, hw->nfixed, hw->sizefixed, GCObject *, MAX_INT, "fixed objects");
  hw->fixed[hw->nfixed++] = o;
}

/* The next collection is of this mode. */
void luaC_changemode (lua_State *L, int newmode) {
  G(L)->gckind = cast_byte(newmode);
}

/* The pause is the heap's factor. */
void luaC_settarget (lua_State *L) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  unsigned int factor = getgcparam(g->gcpause);
  if (hw->given || factor == hw->factor) return;
  hw->factor = factor;
  hw_gc_set_target(hw->heap, factor < 110 ? 110 : factor, hw->least, 0);
}

/* }====================================================== */


/*
** {======================================================
** States
** =======================================================
*/

/*
** LUA_HEAPWRIGHT=factor=150,least=1048576,most=0,generations=1,markers=1,stress,verify,stats
** (see docs/gc-lua.md)
*/
static size_t option (const char *name, size_t otherwise) {
  const char *words = getenv("LUA_HEAPWRIGHT");
  size_t length = strlen(name);
  while (words != NULL && *words != '\0') {
    if (strncmp(words, name, length) == 0 && (words[length] == '=' || words[length] == ','
                                              || words[length] == '\0'))
      return words[length] == '=' ? strtoull(words + length + 1, NULL, 10) : 1;
    if ((words = strchr(words, ',')) != NULL) words++;
  }
  return otherwise;
}

global_State *luaC_newheap (lua_Alloc f, void *ud) {
  global_State *g = cast(global_State *, (*f)(ud, NULL, LUA_TTHREAD, sizeof(global_State)));
  hw_gc_options options;
  hw_gc_runtime runtime;
  Heapwright *hw;
  if (g == NULL) return NULL;
  memset(g, 0, sizeof(*g));
  hw = &g->hw;
  g->frealloc = f;
  g->ud = ud;
  hw->factor = LUAI_GCPAUSE;
  hw->given = option("factor", 0) != 0;
  hw->least = option("least", 1 << 20);
  hw->stress = option("stress", 0) != 0;
  hw->lastdue = &hw->due;
  hw->epoch = 1;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.factor_percent = cast(uint32_t, option("factor", LUAI_GCPAUSE));
  options.least = hw->least;
  options.most = option("most", 0);
  hw->generations = option("generations", 1) != 0;
  options.generations = hw->generations;
  options.markers = cast(uint32_t, option("markers", 1));
  options.verify = option("verify", 0) ? HW_GC_VERIFY_HEAP : 0;
  memset(&runtime, 0, sizeof runtime);
  runtime.size = sizeof runtime;
  runtime.data = g;
  runtime.trace = trace;
  runtime.roots = roots;
  runtime.free = freed;
  runtime.type_name = type_name;
  if (rebuild(g, 0) && (hw->heap = hw_gc_create(&options, &runtime)) != NULL) {
    if ((hw->mutator = hw_gc_attach(hw->heap)) != NULL) {
      hw_gc_defer(hw->mutator);  /* collections are luaC_step's */
      return g;
    }
  }
  luaC_freeheap(g);
  return NULL;
}

lua_State *luaC_firstthread (global_State *g) {
  return cast(lua_State *, hw_gc_alloc(g->hw.mutator, sizeof(lua_State), HW_GC_TRACED));
}

/* Prints a line about the collector's work: LUA_HEAPWRIGHT=stats. */
static void tell (hw_gc_heap *heap) {
  hw_gc_statistics s;
  hw_gc_stats(heap, &s, sizeof s);
  fprintf(stderr, "heapwright: %llu collections, %llu of them minor; %.1f MiB at most; stopped for %.1f ms, "
          "%.2f at most; swept for %.1f ms\n", (unsigned long long)s.cycles,
          (unsigned long long)s.minor_cycles, s.peak_bytes / 1048576.0, s.pause_ns / 1e6,
          s.pause_wall_max_ns / 1e6, s.sweep_ns / 1e6);
}

/* Ends a state, whose finalizers were called. */
void luaC_freeheap (global_State *g) {
  Heapwright *hw = &g->hw;
  Strings *tb = &hw->strings;
  Finalizable *f;
  if (hw->heap && option("stats", 0)) tell(hw->heap);
  if (hw->mutator) hw_gc_detach(hw->mutator);
  if (hw->heap) hw_gc_destroy(hw->heap);
  while ((f = hw->finalizable) != NULL) {
    hw->finalizable = f->next;
    (*g->frealloc)(g->ud, f, sizeof(*f), 0);
  }
  if (hw->fixed) (*g->frealloc)(g->ud, hw->fixed, hw->sizefixed * sizeof(*hw->fixed), 0);
  if (tb->word) (*g->frealloc)(g->ud, tb->word, tb->size * sizeof(*tb->word), 0);
  (*g->frealloc)(g->ud, g, sizeof(*g), 0);
}

/* Calls all finalizers that are left. The object that got its finalizer last comes first. */
void luaC_freeallobjects (lua_State *L) {
  global_State *g = G(L);
  Heapwright *hw = &g->hw;
  Finalizable *f;
  g->gcstp = GCSTPCLS;  /* no more finalizers */
  while ((f = hw->finalizable) != NULL) {
    takeout(hw, f);
    append(hw, f);
  }
  callall(L);
}

/* }====================================================== */
