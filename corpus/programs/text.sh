# ways: check
# needs: gawk
seq 20000 | $CHECK gawk '{ a["k" $1 % 997] = a["k" $1 % 997] $1 } END { n = asorti(a, b); print n, length(a["k5"]), gensub(/(.)k/, "\\1", "g", b[3]) }'
seq 20000 | $CHECK sort -R --random-source=/dev/zero --parallel=4 | wc -l; seq 2000 | $CHECK sed -E 's/(.)(.)/\2\1/g; N; P; D' | cksum
mkdir m && split -l 1000 <(seq 20000) m/ && $CHECK tar czf a.tgz m && $CHECK tar xzf a.tgz -O | cksum; $CHECK diff m/aa m/ab | wc -l
