package shop

import (
	"heapwright"
	"testing"
)

func TestMain(m *testing.M) { heapwright.Main(m) }

func TestRight(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}

func TestWrong(t *testing.T) {
	heapwright.Leaks(t)
	Forget()
}

func TestBehind(t *testing.T) {
	heapwright.Leaks(t)
	GiveBack()
}
