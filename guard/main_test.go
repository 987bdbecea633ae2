package guard_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	goleak.VerifyTestMain(m)
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
