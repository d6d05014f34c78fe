# mimalloc's stress test, which has a switch for the standard functions: threads that hand blocks to
# each other, end and begin anew. Its other tests are of the mi_ functions.

suite_mimalloc() {
    source_package mimalloc
    mkdir -p "$WORK/mimalloc"
    gcc -O2 -w -DUSE_STD_MALLOC "$WORK/sources/mimalloc/test/test-stress.c" -o "$WORK/mimalloc/test-stress" -lpthread
    add test-stress 240 "$WORK/mimalloc/test-stress 8 20 30" # threads, scale, rounds
    add test-stress-many 240 "$WORK/mimalloc/test-stress 64 5 20"
}
