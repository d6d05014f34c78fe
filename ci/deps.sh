#!/usr/bin/env bash
# What depends on what: the core stands on libc (and our own crates)
# alone, the C library on nothing more, and the default build contains no peer
# and none of the tools that race them. What the command carries for its race,
# the workloads and the launcher, needs libc and nothing. The shipped library
# needs the C library only and asks it for no allocation function of its own
# names.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

status=0
tree() { cargo tree --locked -e normal --prefix none --format '{p}' "$@" | sed 's/ v.*//' | sort -u; }
expect() { # WHAT ALLOWED < names
    local extra
    extra=$(grep -vxE "$2" || true)
    if [ -z "$extra" ]; then say "ok   $1"; else say "FAIL $1: $(echo $extra)"; status=1; fi
}
tree -p heapwright-substrate | expect "heapwright-substrate depends on libc and our record crate alone" 'heapwright-(record|substrate)|libc'
tree -p heapwright-gc | expect "heapwright-gc adds nothing" 'heapwright-gc|heapwright-record|heapwright-substrate|libc'
# The debug heap reads unwind tables with gimli, which is built without an allocator.
tree -p heapwright-stacks | expect "heapwright-stacks adds gimli's reader" 'heapwright-(record|stacks|substrate)|libc|gimli'
tree -p heapwright | expect "heapwright stands on our own crates and libc" 'heapwright(-gc|-record|-substrate)?|libc'
tree -p heapwright-malloc | expect "heapwright-malloc adds the stacks" 'heapwright(-gc|-malloc|-record|-stacks|-substrate)?|libc|gimli'
tree -p heapwright-entry | expect "heapwright-entry depends on nothing" 'heapwright-entry'
tree -p heapwright-hardened | expect "heapwright-hardened adds its entries" 'heapwright(-entry|-gc|-hardened|-record|-stacks|-substrate)?|libc|gimli'
tree -p heapwright-entry-reads | expect "heapwright-entry-reads stands on heapwright-entry" 'heapwright-entry(-reads)?'
tree -p heapwright-check | expect "heapwright-check adds its entries" 'heapwright(-check|-entry|-entry-reads|-gc|-record|-stacks|-substrate)?|libc|gimli'
cargo tree --locked -e normal --prefix none -p heapwright-malloc --format '{p} {f}' |
    { grep '^gimli' | grep -vE ' read-core( \(\*\))?$' || true; } |
    expect "gimli is its reader alone, without alloc" ''
tree -p heapwright-workloads | expect "the workloads add libc alone" 'heapwright-workloads|libc'
tree -p heapwright-launcher | expect "the launcher adds nothing" 'heapwright-launcher'
cargo tree --locked --workspace -e normal,build,dev --prefix none --format '{p}' | sed 's/ v.*//' | sort -u |
    { grep -xE 'libmimalloc-sys|mimalloc|snmalloc.*|tikv-jemalloc.*|jemalloc.*|rpmalloc.*|rusty[_-]alloc.*|tcmalloc.*|scudo.*|criterion|gungraun|peers|figures' || true; } |
    expect "no peers and no tools of the race in the default build" ''

command_or_package readelf binutils
preload_library
readelf -d "$HEAPWRIGHT_SO" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    expect "libheapwright.so needs the C library alone" 'libc\.so\.6|ld-linux.*|libgcc_s\.so\.1|libpthread\.so\.0|libdl\.so\.2'
# Initial-exec thread-locals: a call of __tls_get_addr could allocate.
readelf --dyn-syms -W "$HEAPWRIGHT_SO" | awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }' |
    { grep -xE '__tls_get_addr|malloc|calloc|realloc|free|memalign|posix_memalign|aligned_alloc|_Zn.*|_Zd.*' || true; } |
    expect "libheapwright.so imports no allocator and no __tls_get_addr" ''
exit $status
