# ways: preload
# needs: gcc:gcc objdump:binutils
# main: $(gcc -print-prog-name=cc1)
gcc -O2 -Wall -o rounds "$ROOT/bench/debug/rounds.c" && ./rounds 10000 | cut -d' ' -f1,2
{
    echo 'int printf(const char *, ...);'
    for i in $(seq 150); do
        echo "static int f$i(int n) { int a[$((i % 13 + 2))] = {0}, t = $i; for (int k = 0; k < n; k++) {
            switch ((a[k % $((i % 13 + 2))] + k) % 5) { case 0: t += k; break; case 1: t ^= $i; break; default: a[k % 2] = t; } } return t; }"
    done
    echo 'int main(void) { long s = 0;'; for i in $(seq 150); do echo "s += f$i($i);"; done
    echo 'printf("%ld\n", s); return s & 127; }'
} >big.c
gcc -O2 -S big.c -o - | cksum
gcc -O2 -flto big.c -o big && ./big; echo "exit $?"
gcc -g -O1 -c big.c && objdump -d big.o | cksum && ar rcs libbig.a big.o && nm libbig.a | cksum
echo 'int main(void) { return undeclared; }' >bad.c; gcc bad.c
