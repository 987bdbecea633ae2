package rabbit_test

import (
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/rabbit"
)

func TestMalformedURLs(t *testing.T) {
	for url, says := range map[string]string{
		"":                                    "url is empty",
		"s3cr3t":                              "must begin with amqp://",
		"http://u:s3cr3t@host":                "must begin with amqp://",
		"amqp:host":                           "names no host",
		"amqp://":                             "names no host",
		"amqp:///vhost":                       "names no host",
		"amqp://u:s3cr3t@":                    "names no host",
		"amqp://u:s3/cr3t@host":               "malformed",
		"amqp://u:12/s3cr3t@host":             "'#' or '@'",
		"amqp://u:12?s3cr3t@host":             "'#' or '@'",
		"amqp://u:12#s3cr3t":                  "'#' or '@'",
		"amqp://u:s3%cr3t@host":               "malformed",
		"amqp://u:s3cr3t@host:port":           "malformed",
		"amqp://u:s3cr3t@host:0":              "port outside",
		"amqp://u:s3cr3t@host:99999":          "port outside",
		"amqp://u:s3cr3t@host:99999999999":    "invalid port",
		"amqp://u:s3cr3t@host/a b":            "invalid port, blank",
		"amqp://u:s3cr3t@host?heartbeat=soon": "query parameter",
		"amqp://u:s3cr3t@host\n":              "malformed",
		"amqp://u:s3cr3t@[::1":                "malformed",
		"amqp://u:s3cr3t@one,":                "names no host",
		"amqp://u:s3cr3t@one,two:port":        "malformed",
		"http://u:s3cr3t@one,two":             "must begin with amqp://",
	} {
		_, err := rabbit.ParseURL(url)
		switch {
		case err == nil:
			t.Errorf("%q is accepted", url)
		case !strings.Contains(err.Error(), says):
			t.Errorf("%q: err = %v, want one that says %q", url, err, says)
		case strings.Contains(err.Error(), "s3"):
			t.Errorf("%q: the error holds a part of the password: %v", url, err)
		}
	}
}

func TestGoodURLs(t *testing.T) {
	for _, url := range []string{
		"amqp://host",
		"amqps://u:p%40%2F%23@host:5671/%2Fvhost?heartbeat=5",
		"amqp://u:p@[::1]:5672/",
		"amqp://u:p,q@one:5672,two:5672,[::1]:5672/vhost?heartbeat=5",
	} {
		if _, err := rabbit.ParseURL(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
