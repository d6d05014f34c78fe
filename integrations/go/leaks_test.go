package heapwright

import "testing"

func TestMore(t *testing.T) {
	before := amount{true, 1, 5000}
	for said, after := range map[string]amount{
		"20 bytes in 2 blocks": {true, 3, 5020},
		"1 blocks":             {true, 2, 20},
	} {
		if more(before, after) != said {
			t.Errorf("%q is not %q", more(before, after), said)
		}
	}
}
