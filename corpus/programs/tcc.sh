# ways: check
# needs: tcc
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { char *p = malloc(9); sprintf(p, "%%d", 7); puts(p); free(p); return 0; }\n' >a.c
$CHECK tcc a.c -o a && ./a
