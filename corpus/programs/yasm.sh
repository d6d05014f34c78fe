# ways: more
# needs: yasm binutils
for i in $(seq 400); do echo "label$i: mov rax, [rel data$((i % 7))]"; echo "  jmp label$((i * 31 % 400 + 1))"; done >a.asm
for i in $(seq 0 6); do echo "data$i: dq $i * 17, label1"; done >>a.asm
$CHECK yasm -f elf64 -g dwarf2 -l a.lst a.asm -o a.o && objdump -d a.o | cksum && $CHECK yasm -f bin -o b <(printf 'bits 16\n%%macro m 1\n db %%1\n%%endmacro\n%%rep 9\n m 3\n%%endrep\n')
