# jemalloc's integration tests of the standard functions, with a harness of ours
# (jemalloc/test/jemalloc_test.h) instead of its own, which is part of jemalloc. The others test
# what only jemalloc has: mallocx and its kin, mallctl, arenas.

suite_jemalloc() {
    source_package jemalloc
    local name
    mkdir -p "$WORK/jemalloc"
    for name in aligned_alloc malloc overflow posix_memalign; do
        gcc -std=gnu11 -O2 -w -fno-builtin -I "$DATA/jemalloc" "$WORK/sources/jemalloc/test/integration/$name.c" -o "$WORK/jemalloc/$name"
        add "$name" 60 "$WORK/jemalloc/$name"
    done
}
