exclude(:test_dump_all_full, "a free slot is not shown as an object of type NONE")
if RUBY_VERSION >= "4"
  exclude(:test_dump_flags, "the heap says that an object is old, and no age of it")
  exclude(:test_dump_flag_age, "the heap says that an object is old, and no age of it")
end
