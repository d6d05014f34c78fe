# bdwgc's gctest, with threads and a fork: a collector that maps its own heap, scans what malloc
# gave, stops threads by signals and takes locks around fork. It can hang by itself, on any malloc:
# the finalizer that its forked child runs takes a mutex, which another thread may have held when it
# forked. So a hang of it is tried again, twice.

suite_libgc() {
    source_package libgc
    local source=$WORK/sources/libgc
    mkdir -p "$WORK/libgc"
    [ -e "$WORK/libgc/gctest" ] ||
        gcc -O2 -w -DGC_BUILTIN_ATOMIC -DGC_THREADS -DGC_LINUX_THREADS -D_REENTRANT -DTHREAD_LOCAL_ALLOC -DPARALLEL_MARK -DHANDLE_FORK \
            -DENABLE_DISCLAIM -DGC_GCJ_SUPPORT -DJAVA_FINALIZATION -DGC_ATOMIC_UNCOLLECTABLE \
            -I "$source/include" "$source/tests/test.c" "$source/extra/gc.c" -o "$WORK/libgc/gctest" -lpthread -ldl
    add gctest 420 "for round in 1 2 3; do code=0; timeout -k 5 130 '$WORK/libgc/gctest' || code=\$?; [ \$code -eq 124 ] || exit \$code; done; exit 124"
}
