# ways: check leaks
# needs: xz-utils zstd
seq 100000 >f
$CHECK xz -T2 -k -1 f && $CHECK xz -dc f.xz | cmp - f && $CHECK zstd -q -T4 f -o f.zst && $CHECK zstd -q -dc f.zst | cmp - f && $CHECK gzip -k f
