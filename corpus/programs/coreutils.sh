# ways: preload
# needs: xz-utils
# main: sort
seq 300000 | awk '{ print ($1 * 7919) % 300007, "line " $1 }' >lines
sort --parallel=4 -S 8M -k1,1n lines | cksum
sort -u -k2 lines | tail -1
mkdir many; split -l 3000 lines many/part.
tar --sort=name --mtime=@0 -cf many.tar many && xz -T2 -k many.tar && xz -dc many.tar.xz | cmp - many.tar && gzip -k many.tar
gzip -dc many.tar.gz | cksum
find many -name 'part.a*' | sort | xargs -P3 -n5 wc -l | grep -v total | sort | cksum
grep -c 'line [0-9]*7$' lines; sed -n 's/line \(1234[0-9]*\)$/\1/p' lines | sort | head -3
ls /nowhere
