// The interface through which a load allocates. Each load has one source, compiled for each
// collector, so that both do the same work on the same objects.
//
//   -DDOOR_HEAPWRIGHT   heapwright's C interface, inline parts and all
//   -DDOOR_BDWGC        bdwgc 8.2, as its manual says it is fastest
//
// What a door has:
//
//   struct door          what a thread allocates with
//   door_tracer          what marks
//   door_open(limit)     the heap, of at most so many bytes; 0: no limit
//   door_enter(base)     the calling thread; its stack below `base` is looked through
//   door_leave(door)     it allocates no more
//   door_new(door, size, kind)
//                        an object: DOOR_TRACED and zeroed, or DOOR_LEAF and as it is
//   door_write(door, parent, slot, child)
//                        stores a reference in an object
//   door_mark(tracer, object)
//                        from load_trace only
//   door_set_key(entry, slot, key), door_is_key(there, key)
//                        the key of a new entry, which does not keep it, and whether it is that one; NULL: it is dead
//   door_ephemeron(tracer, key slot, value slot)
//                        from load_trace only
//   door_finalize(door, object, run), door_run_finalizers(door)
//                        asks for one, and runs those that are due
//   door_fields()        what the collector counted, as fields of the result
//
// A load defines load_trace, which marks the references of an object. Under bdwgc it is not
// called: bdwgc reads each word of an object.
//
// Locals are roots: both collectors read the stacks. Static variables are roots only of bdwgc, so
// a load keeps no references there.

#ifndef DOOR_H
#define DOOR_H

#if defined(DOOR_HEAPWRIGHT)
#include "door_heapwright.h"
#elif defined(DOOR_BDWGC)
#include "door_bdwgc.h"
#else
#error "define DOOR_HEAPWRIGHT or DOOR_BDWGC"
#endif

#endif
