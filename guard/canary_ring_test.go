package guard

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
)

// aCanary returns a canary that looks at nothing.
func aCanary() *canary {
	halt, end := context.WithCancel(context.Background())
	end()
	return newCanary(halt, nil, nil, newRunning())
}

// TestCanaryForgets: a canary keeps the last claims, and looks for those of the last minute before
// the last commit.
func TestCanaryForgets(t *testing.T) {
	c, s := aCanary(), dbtx.Server{Name: "db"}
	now := time.Now().UnixNano()
	for n := range 3 * canarySize {
		c.add(kept{attempt: int64(n), at: now}, s)
	}
	if n := len(c.claims); n != canarySize {
		t.Errorf("%d claims are kept, want %d", n, canarySize)
	}
	for _, k := range c.recent() {
		if k.attempt < 2*canarySize || k.number != uint64(k.attempt) {
			t.Fatalf("claim %+v is kept, want the last ones", k)
		}
	}
	c.add(kept{at: now + int64(canarySpan) + 1}, s)
	if n := len(c.recent()); n != 1 {
		t.Errorf("%d claims are looked for, want the last one", n)
	}
}

// TestCanaryForgetsServers: claims of any number of servers share a few.
func TestCanaryForgetsServers(t *testing.T) {
	c := aCanary()
	for n := range 100 {
		c.add(kept{}, dbtx.Server{Name: string(rune('a' + n%26))})
	}
	if n := len(c.servers); n != mostServers {
		t.Errorf("%d servers are kept, want %d", n, mostServers)
	}
}

func BenchmarkCanary(b *testing.B) {
	c, s := aCanary(), dbtx.Server{Name: "127.0.0.1:5432 7396528941283746510 00000001"}
	for b.Loop() {
		c.see(s)
		c.add(kept{at: time.Now().UnixNano()}, s)
	}
}
