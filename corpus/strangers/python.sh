# CPython's tests of threads, subprocesses, signals and event loops: one test a module, as its own
# runner reports it. +malloc: with PYTHONMALLOC=malloc, so that small objects are malloc's too.

suite_python() {
    # Debian's, whose tests are all there, not PATH's.
    local name python=/usr/bin/python3
    for name in test_threading test_thread test_subprocess test_signal test_fork1 test_os test_asyncio \
        test_multiprocessing_fork test_multiprocessing_spawn test_multiprocessing_forkserver \
        test_concurrent_futures; do
        add "$name" 900 "exec $python -m test -W $name"
    done
    for name in test_threading test_subprocess test_signal test_fork1 test_multiprocessing_fork test_json test_dict test_gc; do
        add "$name+malloc" 900 "PYTHONMALLOC=malloc exec $python -m test -W $name"
    done
}
