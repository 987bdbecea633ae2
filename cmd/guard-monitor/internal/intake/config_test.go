package intake_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
)

func TestConfigIsChecked(t *testing.T) {
	const url = "amqp://host"
	for says, cfg := range map[string]intake.Config{
		"Prefetch -1":   {Prefetch: -1},
		"Prefetch 2001": {Prefetch: 2001},
	} {
		if _, err := intake.New(url, cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("err = %v, want one that says %q", err, says)
		}
	}
}

// An error about the URL never shows the password.
func TestMalformedURLIsRefused(t *testing.T) {
	const url = "amqp://u:s3/cr3t@host"
	_, err := intake.New(url, intake.Config{})
	for _, err := range []error{err, intake.Declare(t.Context(), url)} {
		if err == nil || !strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "s3") {
			t.Errorf("err = %v, want one that says malformed, without the password", err)
		}
	}
}
