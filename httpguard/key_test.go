package httpguard

import (
	"net/http"
	"strings"
	"testing"
)

func TestKeyOf(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`a`: "a", `"a"`: "a", ` "a" `: "a", `"a b"`: "a b", `"a\"b\\c"`: `a"b\c`, `"a";x=1`: "a", `"a"; x`: "a",
		`a;b`: "a;b", `8e03978e-40d5-43dd-bc93-6894a57f9324`: "8e03978e-40d5-43dd-bc93-6894a57f9324",
		strings.Repeat("x", 255): strings.Repeat("x", 255),
	} {
		if got, err := keyOf(http.Header{"Idempotency-Key": {value}}); got != want || err != nil {
			t.Errorf("keyOf(%q) = %q, %v, want %q", value, got, err, want)
		}
	}
}

// FuzzKeyOf: what is taken is short and printable, and means the same in quotes.
func FuzzKeyOf(f *testing.F) {
	for _, s := range []string{"", "a", `"a"`, `"\"`, `"\\"`, `"a";b`, `"a" ;b`, "a,b", "\x00", "ä", `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := keyOf(http.Header{"Idempotency-Key": {value}})
		if err != nil {
			return
		}
		if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("keyOf(%q) = %q", value, key)
		}
		again := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if got, err := keyOf(http.Header{"Idempotency-Key": {again}}); got != key || err != nil {
			t.Errorf("keyOf(%q) = %q, %v, want %q", again, got, err, key)
		}
	})
}

// TestNameOf: names are valid, and differ as the operations do.
func TestNameOf(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, operation := range []string{"", "POST /a", "POST /A", "POST /a/b", "POST /a-b", "POST /ä", strings.Repeat("x", 100), strings.Repeat("x", 101)} {
		name := nameOf(operation)
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q have one name", operation, other)
		}
		seen[name] = operation
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" {
			t.Errorf("the name of %q is %q", operation, name)
		}
	}
}
