package isnil_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/isnil"
)

func TestValue(t *testing.T) {
	var file *os.File
	var handler http.HandlerFunc
	var header http.Header
	var nothing io.Reader
	for name, v := range map[string]any{"no value": nil, "a nil interface": nothing, "a pointer": file, "a function": handler, "a map": header} {
		if !isnil.Value(v) {
			t.Errorf("%s is not nil", name)
		}
	}
	for name, v := range map[string]any{"a pointer": os.Stdin, "a struct": struct{}{}, "a reader": strings.NewReader(""), "a map": http.Header{}} {
		if isnil.Value(v) {
			t.Errorf("%s is nil", name)
		}
	}
}
