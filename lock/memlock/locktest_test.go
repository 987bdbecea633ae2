package memlock_test

import (
	"testing"

	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/memlock"
)

func TestContract(t *testing.T) {
	locktest.Test(t, func(*testing.T) locktest.Setup {
		e := memlock.New()
		return locktest.Setup{
			Engine: e, Other: e,
			Marks: true, Tokens: true, Nodes: true,
		}
	})
}
