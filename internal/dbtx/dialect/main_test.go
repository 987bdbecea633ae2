package dialect

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	m.Run()
}
