// The interface through which a load allocates. Each load has one source, compiled for each
// collector, so that both do the same work on the same objects.
//
//   -DDOOR_HEAPWRIGHT   heapwright's C interface, inline parts and all
//   -DDOOR_BDWGC        bdwgc 8.2, as its manual says it is fastest
//
// The parts of the interface:
//
//   struct door          the allocating state of a thread
//   door_tracer          the marking state
//   door_open(limit)     makes the heap, with a limit in bytes; 0: none
//   door_enter(base)     enters the calling thread, whose stack is read below `base`
//   door_leave(door)     the thread allocates no more
//   door_new(door, size, kind)
//                        makes an object: DOOR_TRACED and zeroed, or DOOR_LEAF and uninitialised
//   door_write(door, parent, slot, child)
//                        stores a reference in an object
//   door_mark(tracer, object)   from load_trace only
//   door_set_key(entry, slot, key), door_is_key(there, key)
//                        sets a new entry's weak key; compares a key; NULL: dead
//   door_ephemeron(tracer, key slot, value slot)   from load_trace only
//   door_finalize(door, object, run), door_run_finalizers(door)
//                        requests a finalizer, and runs the due ones
//   door_fields()        the collector's counts, as fields of the result
//
// A load defines load_trace, which marks the references of an object. bdwgc does not call it, but
// reads each word of an object.
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
