exclude(:test_implicit_compaction_does_something, "where no page is sparse, nothing moves")
