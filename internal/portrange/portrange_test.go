package portrange_test

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/belaygo/belay/internal/portrange"
)

// TestReserve has many ask at once: no two may get the same ports, although no
// server listens on them yet.
func TestReserve(t *testing.T) {
	var mu sync.Mutex
	taken := make(map[int]bool)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			first, reserved, err := portrange.Reserve()
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = reserved.Close() })
			mu.Lock()
			defer mu.Unlock()
			if taken[first] {
				t.Errorf("port %d is given twice", first)
			}
			taken[first] = true
		})
	}
	wg.Wait()
}

// TestServerInRange starts a server in the middle of ports that are free again.
func TestServerInRange(t *testing.T) {
	first, reserved, err := portrange.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	_ = reserved.Close()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+7)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 50 {
		got, reserved, err := portrange.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		defer reserved.Close()
		if got == first {
			t.Fatalf("port %d is given, and a server listens on %d", got, first+7)
		}
	}
}
