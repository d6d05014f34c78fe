/*
** GC::Profiler: a record for each pause of a collection, as Ruby's own keeps one for each collection.
**
**   pause begins, ends --> records (a vector of malloc's)  --> raw_data, result, report, total_time
**
** A record of Ruby's own has the sizes of the heap in Ruby's terms. Here it has the live bytes and
** the goal of the last collection.
*/
#include <time.h>

#include "heapwright.h"

struct record {
    double began, seconds;
    size_t live, goal;
};

static struct {
    struct record *records;
    size_t count, room;
    bool enabled;
    double from, began;
} profiler;

static double
now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void
ruby_profiler_heard(struct objspace *o, bool begins)
{
    if (!profiler.enabled) return;
    if (begins) {
        profiler.began = now();
        return;
    }
    hw_gc_statistics s;
    hw_gc_stats(o->heap, &s, sizeof s);
    struct record record = { profiler.began - profiler.from, now() - profiler.began, s.live_bytes, s.goal_bytes };
    ruby_push((void **)&profiler.records, &profiler.count, &profiler.room, sizeof record, &record);
}

static VALUE
enabled_p(VALUE self)
{
    return profiler.enabled ? Qtrue : Qfalse;
}

static VALUE
enable(VALUE self)
{
    profiler.enabled = true;
    return Qnil;
}

static VALUE
disable(VALUE self)
{
    profiler.enabled = false;
    return Qnil;
}

static VALUE
clear(VALUE self)
{
    profiler.count = 0;
    return Qnil;
}

static VALUE
total_time(VALUE self)
{
    double sum = 0;

    for (size_t i = 0; i < profiler.count; i++) sum += profiler.records[i].seconds;
    return DBL2NUM(sum);
}

static VALUE
raw_data(VALUE self)
{
    struct objspace *o = rb_gc_get_objspace();
    VALUE all = rb_ary_new();

    if (!profiler.enabled && profiler.count == 0) return Qnil;
    for (size_t i = 0; i < profiler.count; i++) {
        struct record record = profiler.records[i];
        VALUE hash = rb_hash_new();
#define SET(name, value) rb_hash_aset(hash, ID2SYM(rb_intern(#name)), value)
        SET(GC_FLAGS, rb_hash_new());
        SET(GC_TIME, DBL2NUM(record.seconds));
        SET(GC_INVOKE_TIME, DBL2NUM(record.began));
        SET(HEAP_USE_SIZE, SIZET2NUM(record.live));
        SET(HEAP_TOTAL_SIZE, SIZET2NUM(record.goal));
        SET(HEAP_TOTAL_OBJECTS, SIZET2NUM(record.live / o->sizes[0]));
        SET(MOVED_OBJECTS, INT2FIX(0));
        SET(GC_IS_MARKED, Qtrue);
#undef SET
        rb_ary_push(all, hash);
    }
    return all;
}

static VALUE
result(VALUE self)
{
    struct objspace *o = rb_gc_get_objspace();
    VALUE text = rb_str_new(NULL, 0);

    if (profiler.count == 0) return text;
    rb_str_catf(text, "GC %" PRIuSIZE " invokes.\n", profiler.count);
    rb_str_cat_cstr(text, "Index    Invoke Time(sec)       Use Size(byte)     Total Size(byte)         Total Object        GC Time(ms)\n");
    for (size_t i = 0; i < profiler.count; i++) {
        struct record record = profiler.records[i];
        rb_str_catf(text, "%5" PRIuSIZE " %19.3f %20" PRIuSIZE " %20" PRIuSIZE " %20" PRIuSIZE " %30.20f\n", i + 1,
                    record.began, record.live, record.goal, record.live / o->sizes[0], record.seconds * 1000);
    }
    return text;
}

static VALUE
report(int argc, VALUE *argv, VALUE self)
{
    VALUE out = argc == 0 ? rb_stdout : argv[0];

    rb_io_write(out, result(self));
    return Qnil;
}

void
ruby_profiler_init(void)
{
    VALUE module = rb_define_module_under(rb_mGC, "Profiler");

    profiler.from = now();
    rb_define_singleton_method(module, "enabled?", enabled_p, 0);
    rb_define_singleton_method(module, "enable", enable, 0);
    rb_define_singleton_method(module, "disable", disable, 0);
    rb_define_singleton_method(module, "clear", clear, 0);
    rb_define_singleton_method(module, "total_time", total_time, 0);
    rb_define_singleton_method(module, "raw_data", raw_data, 0);
    rb_define_singleton_method(module, "result", result, 0);
    rb_define_singleton_method(module, "report", report, -1);
}
