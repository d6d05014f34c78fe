/*
** The differences between Ruby's versions, and the parts of objects that the port reads and Ruby's
** public headers do not name. Checked against 3.4.5 and 4.0.1. The port's other files are the same
** for both versions, except for the few functions that only one version has.
**
**   3.4   ids are the collector's       variables beside an object: a flag       a reference that is weak lies in malloc's memory
**   4.0   ids are among the variables   its shape says whether it has any        it may lie in the object, too
**
** The flags are those of Ruby's internal headers, in the source that the port is built against.
*/
#ifndef RUBY_HEAPWRIGHT_INTERFACE_H
#define RUBY_HEAPWRIGHT_INTERFACE_H

#include "internal.h" /* first: it undefines macros that the headers below define */
#include "ruby/version.h"
#include "internal/compilers.h"
#include "internal/array.h"
#include "internal/class.h"
#include "internal/hash.h"
#include "internal/imemo.h"
#include "internal/string.h"
#include "internal/struct.h"
#include "shape.h"
#include "vm_callinfo.h"

#define RUBY_IS_4 (RUBY_API_VERSION_CODE >= 40000)

#define STRING_IS_SHARED STR_SHARED
#define STRING_IS_INTERNED RSTRING_FSTR
#define ARRAY_IS_SHARED RARRAY_SHARED_FLAG
#define HASH_IS_LARGE RHASH_ST_TABLE_FLAG

/* The flag of an object that has no barriers. It is the one flag that Ruby leaves to the
   collector when it copies an object's flags to another object. */
#define NO_BARRIERS ((VALUE)RUBY_FL_PROMOTED)

/* The variables of a T_OBJECT: their number by its shape, whether they are in a table or in the object itself,
   and where they are. For any other object: whether it has some. These are beside it, and the VM finds them.
   HAS_ID: the object has an id, which is forgotten when it dies. IS_NOTED: ruby_note was called for the object. */
#if RUBY_IS_4
#define SHAPE_OF(flags) ((shape_id_t)((flags) >> SHAPE_FLAG_SHIFT))
#define HAS_TABLE(obj) (rb_shape_obj_too_complex_p(obj))
#define VARIABLES(obj) (RBASIC_FIELDS_COUNT(obj))
#define HAS_VARIABLES_WITHIN(flags) (!((flags) & ROBJECT_HEAP))
#define VARIABLES_BESIDE(obj) (ROBJECT(obj)->as.heap.fields)
#define HAS_VARIABLES_BESIDE(flags) (rb_shape_has_fields(SHAPE_OF(flags)) && ((flags) & RUBY_T_MASK) != T_OBJECT)
#define HAS_ID(flags) (rb_shape_has_object_id(SHAPE_OF(flags)))
#define IS_NOTED(flags) ((flags) & FL_FINALIZE)
#define CLASS_EXTENSION(klass) RCLASS_EXT_PRIME(klass)
#define SUPERCLASS(klass) (RCLASS_EXT_PRIME(klass)->super)
#else
#define HAS_TABLE(obj) (RBASIC_SHAPE_ID(obj) == OBJ_TOO_COMPLEX_SHAPE_ID)
#define VARIABLES(obj) (rb_shape_get_shape_by_id(RBASIC_SHAPE_ID(obj))->next_iv_index)
#define HAS_VARIABLES_WITHIN(flags) ((flags) & ROBJECT_EMBED)
#define VARIABLES_BESIDE(obj) (ROBJECT(obj)->as.heap.ivptr)
#define HAS_VARIABLES_BESIDE(flags) ((flags) & FL_EXIVAR)
#define HAS_ID(flags) ((flags) & FL_SEEN_OBJ_ID)
#define IS_NOTED(flags) ((flags) & (FL_SEEN_OBJ_ID | FL_FINALIZE))
#define CLASS_EXTENSION(klass) RCLASS_EXT(klass)
#define SUPERCLASS(klass) RCLASS_SUPER(klass)
#endif

/* Floats, big integers and symbols lead to nothing. Since 4.0 they may lead to an id, and a
   symbol leads to its string. */
#define NUMBERS_ARE_LEAVES (!RUBY_IS_4)

/* IMEMO_IS_FREED: internal objects of which rb_imemo_free frees something, or that a table of the VM knows.
   The unknown types of a later version count as such. IMEMO_IS_BARE: of these, an object with nothing to free. */
#if RUBY_IS_4
#define IMEMO_IS_FREED                                                                             \
    (0xffffu & ~(1u << imemo_cref | 1u << imemo_svar | 1u << imemo_throw_data | 1u << imemo_ifunc | \
                 1u << imemo_memo | 1u << imemo_constcache))
#define IMEMO_OF(flags) ((flags) >> FL_USHIFT & IMEMO_MASK)
#define IMEMO_IS_BARE(flags)                                                                       \
    (IMEMO_OF(flags) == imemo_callcache ? !((flags) & VM_CALLCACHE_REFINEMENT)                     \
                                        : IMEMO_OF(flags) == imemo_fields && !((flags) & OBJ_FIELD_HEAP) && !HAS_ID(flags))
#else
#define IMEMO_IS_FREED                                                                             \
    (0xffffu & ~(1u << imemo_cref | 1u << imemo_svar | 1u << imemo_throw_data | 1u << imemo_ifunc | \
                 1u << imemo_memo | 1u << imemo_parser_strterm | 1u << imemo_callcache | 1u << imemo_constcache))
#define IMEMO_IS_BARE(flags) false
#endif

/* The names of 4.0 for functions of 3.4's gc/gc.h. */
#if !RUBY_IS_4
#define RB_GC_VM_LOCK() rb_gc_vm_lock()
#define RB_GC_VM_UNLOCK(level) rb_gc_vm_unlock(level)
#define RB_GC_CR_LOCK() rb_gc_cr_lock()
#define RB_GC_CR_UNLOCK(level) rb_gc_cr_unlock(level)
#endif

/* Finalizers get the id of the dead object. Since 4.0 the VM no longer knows the id then, so the
   list of blocks begins with it. */
#if RUBY_IS_4
#define FIRST_BLOCK 1
#define BLOCKS_OF(obj, block) rb_ary_new_from_args(2, rb_obj_id(obj), block)
#else
#define FIRST_BLOCK 0
#define BLOCKS_OF(obj, block) rb_ary_new_from_args(1, block)
#endif

/* The arguments of an allocation beside flags and class, and the argument that tells malloc's
   functions whether they may collect. */
#if RUBY_IS_4
#define FIRST_WORDS
#define FIRST_WORD(n) 0
#define PASS_FIRST_WORDS
#define IF_ALLOWED , bool allowed
#define ALLOWED allowed
#define PASS_ALLOWED , allowed
#else
#define FIRST_WORDS VALUE v1, VALUE v2, VALUE v3,
#define FIRST_WORD(n) v##n
#define PASS_FIRST_WORDS v1, v2, v3,
#define IF_ALLOWED
#define ALLOWED true
#define PASS_ALLOWED
#endif

#endif
