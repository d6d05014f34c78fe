stays = "an object that may not move keeps its whole page where it is, so a page or so of 50,000 objects stays"
exclude(:test_moving_arrays_down_heaps, stays)
exclude(:test_moving_arrays_up_heaps, stays)
exclude(:test_moving_objects_between_heaps, stays)
exclude(:test_moving_strings_up_heaps, stays)
exclude(:test_moving_strings_down_heaps, stays)
exclude(:test_moving_hashes_down_heaps, stays)
exclude(:test_gc_compact_stats, "where no page is sparse, nothing moves")
