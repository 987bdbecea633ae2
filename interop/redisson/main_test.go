// Package interop_test holds Belay against the real Redisson: Java threads and
// goroutines on the same locks of one Redis Cluster.
package interop_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A check returns what it saw, in a few words.
type check struct {
	name string
	run  func(*testing.T, *stage) string
}

func TestRedisson(t *testing.T) {
	s := setUp(t)
	checks := []check{
		{"what is stored", sameWireFormat},
		{"what Redisson sends", redissonSendsWhatItSent},
		{"what Belay sends has the same effects", sameEffects},
		{"one bus", sameBus},
		{"unprotected counter", counterIsExact},
		{"busy Go lets Java in", busyGoLetsJavaIn},
		{"Java holds past the ttl", javaKeepsGoOut},
		{"Go holds past the ttl", goKeepsJavaOut},
		{"Java holds twice", javaHoldsTwice},
		{"nobody else's lock", othersCannotRelease},
		{"Java waits for Go", goWakesJava("go-wakes")},
		{"Go waits for Java", javaWakesGo("java-wakes")},
		{"Java waits for Go, a hash tag", goWakesJava("{go}:wakes")},
		{"Go waits for Java, a hash tag", javaWakesGo("{java}:wakes")},
		{"force unlock by Java", goIsToldOfForceUnlock},
		{"deleted while Java works", deletionProvesLittle},
		{"dead Go holder", javaTakesOverFromGo},
		{"dead Java holder", goTakesOverFromJava},
	}
	passed := 0
	for _, c := range checks {
		if t.Run(c.name, func(t *testing.T) { t.Logf("%s: %s", c.name, c.run(t, s)) }) {
			passed++
		}
	}
	fmt.Fprintf(os.Stdout, "belay interop: %d of %d checks passed, redisson %s\n", passed, len(checks), s.java.version)
}
