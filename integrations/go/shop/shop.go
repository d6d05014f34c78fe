package shop

/*
#include <stdlib.h>
__attribute__((noinline)) static void forget(void) { char *volatile block = malloc(1234); block = NULL; }
__attribute__((noinline)) static void give_back(void) { free(malloc(1234)); }
*/
import "C"

func Forget()   { C.forget() }
func GiveBack() { C.give_back() }
