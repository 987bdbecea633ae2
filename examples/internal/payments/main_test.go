package payments_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/teststack"
)

// Variables of a process.
const (
	childRole     = "BELAY_TEST_PAYMENTS_ROLE"
	childDSN      = "BELAY_TEST_PAYMENTS_DSN"
	childRedis    = "BELAY_TEST_PAYMENTS_REDIS"
	childProvider = "BELAY_TEST_PAYMENTS_PROVIDER" // its address
	childLedger   = "BELAY_TEST_PAYMENTS_LEDGER"   // the provider's file
)

// The roles, of which three are wrong on purpose.
const (
	roleService   = "service"
	roleProvider  = "provider"
	roleNewIDs    = "service that calls with a new id each time"
	roleByHand    = "service that does without guard.Call"
	roleLongUntil = "service whose Until is longer than ids are remembered"
)

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		teststack.Quiet()
		goleak.VerifyTestMain(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	run := serve
	if role == roleProvider {
		run = serveProvider
	}
	if err := run(ctx, role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
