# ways: check leaks
# needs: make
printf 'all: $(patsubst %%,f%%,$(shell seq 20))\nf%%:\n\t@echo $@ | tr f g >$@\n' >Makefile
$CHECK make -s -j4 && cat f* | cksum
