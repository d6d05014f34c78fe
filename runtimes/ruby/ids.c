/*
** Object ids, for a Ruby before 4.0. Since 4.0 the VM keeps them, among the variables of objects.
**
**   id_of       object -> id, which is never given again
**   object_of   id -> object
**
** The VM's lock protects both tables, also in a sweep. An object that gets an id is noted, and
** forgotten when it dies.
*/
#include "heapwright.h"

#if !RUBY_IS_4
void
ruby_ids_init(struct objspace *o)
{
    o->id_of = st_init_numtable();
    o->object_of = st_init_numtable();
    o->next_id = RUBY_IMMEDIATE_MASK + 1;
}

VALUE
ruby_id_of(struct objspace *o, VALUE obj)
{
    st_data_t id;

    if (st_lookup(o->id_of, obj, &id)) return (VALUE)id;
    id = ULL2NUM(o->next_id);
    o->next_id += RUBY_IMMEDIATE_MASK + 1;
    return id;
}

void
ruby_forget_id(struct objspace *o, VALUE obj)
{
    st_data_t key = obj, id;

    if (st_delete(o->id_of, &key, &id)) st_delete(o->object_of, &id, NULL);
}

VALUE
rb_gc_impl_object_id(void *objspace, VALUE obj)
{
    struct objspace *o = objspace;
    unsigned int lock = RB_GC_VM_LOCK();
    VALUE id = ruby_id_of(o, obj);
    bool noted = ruby_note(o, obj, FL_SEEN_OBJ_ID);

    if (noted) {
        st_insert(o->id_of, obj, id);
        st_insert(o->object_of, id, obj);
    }
    RB_GC_VM_UNLOCK(lock);
    if (!noted) rb_memerror();
    return id;
}

VALUE
rb_gc_impl_object_id_to_ref(void *objspace, VALUE id)
{
    struct objspace *o = objspace;
    st_data_t obj;
    unsigned int lock = RB_GC_VM_LOCK();
    bool found = FIXNUM_P(id) && st_lookup(o->object_of, id, &obj) && !rb_gc_impl_garbage_object_p(o, (VALUE)obj);

    RB_GC_VM_UNLOCK(lock);
    if (found) return (VALUE)obj;
    bool was = RTEST(rb_funcall(id, rb_intern("<"), 1, ULL2NUM(o->next_id)));
    rb_raise(rb_eRangeError, was ? "%+" PRIsVALUE " is recycled object" : "%+" PRIsVALUE " is not id value",
             rb_funcall(id, rb_intern("to_s"), 1, INT2FIX(10)));
}
#endif
