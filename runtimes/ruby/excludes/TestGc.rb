exclude(:test_thrashing_for_young_objects, "pages without objects stay in the heap, for objects of any size: heap_empty_pages is not 0")
exclude(:test_gc_parameter, "most RUBY_GC_* variables say how Ruby's own heap grows, and are not echoed here")
exclude(:test_gc_parameter_init_slots, "the heap has no slots before there are objects")
exclude(:test_old_to_young_reference, "an object is old when it has survived two collections, not three")
