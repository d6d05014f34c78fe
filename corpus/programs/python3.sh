# ways: preload long
# main: $PYTHON
# blank: s/^[0-9]+:[0-9:.]+ load avg: [0-9.]+ //; s/ -- test_[a-z_]+ passed.*//; s/Total duration: .*//; s/test_python_[0-9]+(æ|_worker_[0-9]+)?/TMP/g; s/ in [0-9.]+ (sec|min|ms)[^)]*//; s/@test_[0-9]+_tmp[^ ]*/TMP/g; /^== /d; /^Using random seed/d; s/\([0-9.]+ sec\)//
"$PYTHON" -m test test_json test_dict test_set test_list test_threading test_subprocess test_gc test_bytes test_re test_sort test_weakref test_fork1 test_thread test_sqlite3 test_pickle test_ctypes test_mmap;
