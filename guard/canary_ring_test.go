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

// TestCanaryOfABusyService: claims that those of the next server displace before the look begins are
// looked for, and each once.
func TestCanaryOfABusyService(t *testing.T) {
	c := aCanary()
	c.looking = true // by this test
	now := time.Now().UnixNano()
	for range 5 {
		c.add(kept{at: now}, dbtx.Server{Name: "former"})
	}
	for range 2 * canarySize {
		c.add(kept{at: now}, dbtx.Server{Name: "next"})
	}
	c.begin(0)
	former := 0
	for _, k := range c.sought {
		if k.server.Name == "former" {
			former++
		}
	}
	if former != 5 || len(c.sought) != 5+canarySize {
		t.Errorf("%d claims are looked for, %d of them of the former server", len(c.sought), former)
	}
}

// TestCanaryStrikesOnce: claims that are found to be lost while the server changes again are not looked
// for any more.
func TestCanaryStrikesOnce(t *testing.T) {
	c := aCanary()
	c.looking = true // by this test
	c.add(kept{at: 1}, dbtx.Server{Name: "former"})
	c.see(dbtx.Server{Name: "next"})
	c.begin(0)
	missing := c.sought
	c.see(dbtx.Server{Name: "third"})
	c.strike(missing)
	c.sought = nil
	c.begin(0)
	if len(missing) != 1 || len(c.sought) != 0 {
		t.Errorf("%d claims were missing, %d are looked for again", len(missing), len(c.sought))
	}
}

// TestCanaryGathers: claims that are committed while a look is due are looked for with the others, so
// that one loss is one event.
func TestCanaryGathers(t *testing.T) {
	c := aCanary()
	c.looking = true // by this test
	c.add(kept{at: 1}, dbtx.Server{Name: "former"})
	c.see(dbtx.Server{Name: "next"})
	c.begin(0)
	c.add(kept{at: 2}, dbtx.Server{Name: "next"})
	c.gather()
	if len(c.sought) != 2 {
		t.Errorf("%d claims are looked for, want 2", len(c.sought))
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
