//go:build failpoints

package failpoints_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet() // connections break here all the time
	text := os.Getenv(roleVariable)
	if text == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := play(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	if r.Monitor != nil {
		return r.Monitor.run(context.Background())
	}
	if r.Relay != nil {
		return r.Relay.run(context.Background())
	}
	return r.Service.run(context.Background())
}
