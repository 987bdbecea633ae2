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
	t.Run("scripts", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir: "testdata/script",
			Setup: func(env *testscript.Env) error {
				env.Setenv("PATH", filepath.Dir(binary)+string(filepath.ListSeparator)+env.Getenv("PATH"))
				env.Setenv("SAMPLE", sample)
				env.Setenv("HOOK", hook.URL)
				if strings.HasSuffix(env.WorkDir, "broker") {
					env.Setenv("BELAY_AMQP_URL", teststack.AMQP(t))
				}
				return nil
			},
		})
	})
}
