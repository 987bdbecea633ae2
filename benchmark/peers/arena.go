package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// An arena is a page of memory, shared by all processes of a measurement, in
// which the holders of the lock would notice each other. Each number is a
// native int64 on a cache line of its own.
type arena struct {
	page []byte

	inside   *atomic.Int64 // callers in the critical section, at byte 0
	sum      *atomic.Int64 // raised without protection, at byte 64
	last     *atomic.Int64 // the caller that was inside last, at byte 128
	overlaps *atomic.Int64 // callers that found another inside, at byte 192
}

const arenaSize = 4096

// newArena makes an empty arena in a file.
func newArena() (path string, err error) {
	dir := "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "belay-arena-")
	if err != nil {
		return "", fmt.Errorf("make arena: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(arenaSize); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("make arena: %w", err)
	}
	return f.Name(), nil
}

func openArena(path string) (*arena, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the file that newArena made
	if err != nil {
		return nil, fmt.Errorf("open arena: %w", err)
	}
	defer f.Close()
	page, err := syscall.Mmap(int(f.Fd()), 0, arenaSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map arena: %w", err)
	}
	at := func(offset int) *atomic.Int64 {
		return (*atomic.Int64)(unsafe.Pointer(&page[offset])) //nolint:gosec // aligned, and inside the page
	}
	return &arena{page: page, inside: at(0), sum: at(64), last: at(128), overlaps: at(192)}, nil
}

func (a *arena) close() { _ = syscall.Munmap(a.page) }

// pass is the critical section. It reports whether another caller was the last
// one inside.
func (a *arena) pass(caller int64) (handOver bool) {
	if a.inside.Add(1) != 1 {
		a.overlaps.Add(1)
	}
	sum := a.sum.Load()
	handOver = a.last.Load() != caller
	a.last.Store(caller)
	a.sum.Store(sum + 1)
	a.inside.Add(-1)
	return handOver
}

// broken tells how often exclusion failed, given how many callers passed: those
// that met another inside, or those whose addition to the sum was lost,
// whichever shows more.
func (a *arena) broken(passed int64) int64 {
	return max(a.overlaps.Load(), passed-a.sum.Load())
}
