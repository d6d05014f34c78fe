exclude(:test_warmup_frees_pages, "heap_allocatable_slots is what the heap may grow by, and changes when it has been collected")
exclude(:test_warmup_run_major_gc_and_compact, "Process.warmup is a compaction, and that is two major collections: the first one finds what lives where")
