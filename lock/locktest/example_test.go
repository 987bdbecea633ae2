package locktest_test

import (
	"testing"

	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/memlock"
)

// The test of an engine of one's own. Here both engines are one, as it keeps its
// locks in memory; an engine on a server has two connections to it.
func ExampleTest() {
	test := func(t *testing.T) {
		locktest.Test(t, func(*testing.T) locktest.Setup {
			engine := memlock.New()
			return locktest.Setup{
				Engine: engine, Other: engine,
				Marks: true, Tokens: true, Nodes: true,
			}
		})
	}
	_ = test
}
