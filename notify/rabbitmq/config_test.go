package rabbitmq_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/notify/rabbitmq"
)

func TestConfigsAreChecked(t *testing.T) {
	const url = "amqp://host"
	for says, cfg := range map[string]rabbitmq.Config{
		"Timeout -1ns":     {Timeout: -1},
		"DialTimeout -1ns": {DialTimeout: -1},
		`Name "\xff"`:      {Name: "\xff"},
	} {
		if _, err := rabbitmq.New(url, cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("err = %v, want one that says %q", err, says)
		}
	}
}

// An error about the URL never shows the password.
func TestMalformedURLIsRefused(t *testing.T) {
	_, err := rabbitmq.New("amqp://u:s3/cr3t@host", rabbitmq.Config{})
	if err == nil || !strings.Contains(err.Error(), "malformed") || strings.Contains(err.Error(), "s3") {
		t.Errorf("err = %v, want one that says malformed, without the password", err)
	}
}
