// Package heapwright makes a leak of C memory in a test that test's failure.
//
//	func TestMain(m *testing.M) { heapwright.Main(m) }
//
//	func TestParse(t *testing.T) {
//		heapwright.Leaks(t)
//		...
//	}
//
//	go test -exec 'heapwright check --anyway --fail-on errors -o report --' ./...
//
// Go ends a process by a system call, past the C library. Main ends it by C's exit, so that the
// last look is made. Leaks makes a leak check at once and one when the test has ended. Each check
// takes some milliseconds. Tests that call Leaks do not run in parallel. If only Go's heap or a
// goroutine's stack leads to a block, the block counts as lost, because heapwright does not look
// there.
//
// Leaks asks the library that `heapwright check` preloads. Without that library nothing is known,
// and no test fails.
package heapwright

/*
#cgo linux LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <heapwright.h>

// Returns whether the loss is known. Blocks that were lost with others count, too.
static int lost(unsigned long long *blocks, unsigned long long *bytes) {
	size_t (*check)(hw_leak_check *, size_t) = (size_t (*)(hw_leak_check *, size_t))dlsym(RTLD_DEFAULT, "hw_check_leaks");
	hw_leak_check found;
	memset(&found, 0, sizeof found);
	if (!check || !check(&found, sizeof found))
		return 0;
	*blocks = found.definite.blocks + found.indirect.blocks;
	*bytes = found.definite.bytes + found.indirect.bytes;
	return 1;
}
*/
import "C"

import (
	"fmt"
	"os"
	"testing"
)

type amount struct {
	known         bool
	blocks, bytes uint64
}

func lost() amount {
	var blocks, bytes C.ulonglong
	known := C.lost(&blocks, &bytes) != 0
	return amount{known, uint64(blocks), uint64(bytes)}
}

// more describes the memory that was lost between two checks. Meanwhile a large lost block may have
// been found again, and freed. Then there are more blocks, of fewer bytes.
func more(before, after amount) string {
	blocks := after.blocks - before.blocks
	if after.bytes < before.bytes {
		return fmt.Sprintf("%d blocks", blocks)
	}
	return fmt.Sprintf("%d bytes in %d blocks", after.bytes-before.bytes, blocks)
}

// Leaks fails the test if memory of C is lost between this call and the test's end.
func Leaks(t testing.TB) {
	t.Helper()
	before := lost()
	t.Cleanup(func() {
		t.Helper()
		after := lost()
		if before.known && after.known && after.blocks > before.blocks {
			t.Errorf("heapwright: %s of C are lost", more(before, after))
		}
	})
}

// Main runs the tests and ends the process as C does.
func Main(m *testing.M) {
	code := m.Run()
	os.Stdout.Sync()
	C.exit(C.int(code))
}
