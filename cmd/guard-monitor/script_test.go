package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belaygo/belay/internal/teststack"
)

// The scripts of testdata/script run the binary as people do.
func TestScripts(t *testing.T) {
	sample, err := filepath.Abs("../../deploy/guard-monitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/bad") {
			_, _ = io.WriteString(w, `{"errcode":310000,"errmsg":"sign not match"}`)
		}
	}))
	t.Cleanup(hook.Close)
	runScripts(t, "testdata/script", "SAMPLE="+sample, "HOOK="+hook.URL)
}

// Those of testdata/broker need a broker.
func TestBrokerScripts(t *testing.T) {
	runScripts(t, "testdata/broker", "BELAY_AMQP_URL="+teststack.AMQP(t))
}

func runScripts(t *testing.T, dir string, env ...string) {
	t.Helper()
	t.Run("scripts", func(t *testing.T) { // which run in parallel, before the cleanup of the caller
		testscript.Run(t, testscript.Params{
			Dir: dir,
			Setup: func(e *testscript.Env) error {
				e.Vars = append(e.Vars, env...)
				e.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+e.Getenv("PATH"))
				return nil
			},
		})
	})
}
