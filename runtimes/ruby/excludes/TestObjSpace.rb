exclude(:test_dump_all_full, "a free slot is not shown as an object of type NONE")
