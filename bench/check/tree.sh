#!/usr/bin/env bash
# tree.sh WORK COUNT: writes inputs with many short processes, in WORK. Prints a line for each, with tabs:
# NAME COMMAND [ARGUMENT...]. The output of each is the same in all runs.
#
#   make -j2      a tree of COUNT small C files, compiled anew by each run
#   shell script  like a configure script: 3 * COUNT runs of small programs, one after the other
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: tree.sh WORK COUNT" >&2; exit 2; }
tabbed() { local IFS=$'\t'; printf '%s\n' "$*"; }
count=$2
mkdir -p "$1/tree.$count"
cd "$1/tree.$count"

# The system's headers are most of the cost of a small file, as in real builds.
if [ ! -f made ]; then
    for ((i = 0; i < count; i++)); do
        cat >"part$i.c" <<C
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item$i { struct item$i *next; int key; char name[$((8 + i % 24))]; };

static struct item$i *insert$i(struct item$i *list, int key, const char *name) {
    struct item$i *item = malloc(sizeof *item);
    if (!item) return list;
    item->next = list;
    item->key = key;
    strncpy(item->name, name, sizeof item->name - 1);
    item->name[sizeof item->name - 1] = 0;
    return item;
}

int part$i(const char *text, int n) {
    struct item$i *list = NULL;
    int sum = 0;
    for (int k = 0; k < n; k++) list = insert$i(list, k * $((i + 3)) % 31, text);
    for (struct item$i *item = list; item; item = item->next) sum += item->key ^ (int)strlen(item->name);
    while (list) { struct item$i *next = list->next; free(list); list = next; }
    if (sum < 0) fprintf(stderr, "part %d: %d\n", $i, sum);
    return sum;
}
C
    done
    {
        printf 'OBJECTS = %s\n' "$(seq -f 'part%.0f.o' -s ' ' 0 $((count - 1)))"
        printf 'libparts.a: $(OBJECTS)\n\t@rm -f $@; ar rcD $@ $(OBJECTS); cksum <$@\n'
        printf '%%.o: %%.c\n\t@gcc -O1 -c -o $@ $<\n'
    } >Makefile
    cat >script <<'SH'
i=0
while [ $i -lt $1 ]; do
    expr $i + 1 >out
    sed s/1/one/ out
    cat out | cut -c1
    i=$((i + 1))
done | cksum
SH
    touch made
fi

tabbed 'make -j2' "$(command -v make)" -s -B -j2 -C "$PWD"
tabbed 'shell script' /bin/sh -c 'cd "$1" && exec sh ./script "$2"' sh "$PWD" "$((count * 3 / 4))"
