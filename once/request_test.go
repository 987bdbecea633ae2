package once_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/once"
)

func sumOf(r once.Request) [32]byte { return requestkey.Sum(r.Operation, r.Scope, r.ID) }

// TestSum: what differs in any part is another request, wherever the parts are cut.
func TestSum(t *testing.T) {
	t.Parallel()
	seen := make(map[[32]byte]once.Request)
	for _, r := range []once.Request{
		{Operation: "a", Scope: []string{"b"}, ID: "c"},
		{Operation: "ab", Scope: []string{"b"}, ID: "c"},
		{Operation: "a", Scope: []string{"bb"}, ID: "c"},
		{Operation: "a", Scope: []string{"b", "b"}, ID: "c"},
		{Operation: "a", Scope: []string{"b", "c"}, ID: "c"},
		{Operation: "a", Scope: []string{"b"}, ID: "cc"},
		{Operation: "a", Scope: []string{"bc"}, ID: ""},
		{Operation: "a", Scope: []string{"b", ""}, ID: "c"},
		{Operation: "a", Scope: []string{"", "b"}, ID: "c"},
		{Operation: "a", Scope: []string{"b\x00c"}, ID: "c"},
	} {
		if other, ok := seen[sumOf(r)]; ok {
			t.Errorf("%+v and %+v have one sum", r, other)
		}
		seen[sumOf(r)] = r
		with := r
		with.Print = once.PrintOf(1, []byte("x"))
		if sumOf(with) != sumOf(r) || with.Key() != r.Key() {
			t.Errorf("the Print of %+v names it", r)
		}
	}
}

// TestSumStays: a sum is stored, so it must not change between versions.
func TestSumStays(t *testing.T) {
	t.Parallel()
	r := once.Request{Operation: "charge", Scope: []string{"tenant", "user"}, ID: "4711"}
	if got, want := r.Key(), "once:charge:65ea30e2204e8cba2f0ae6b7e6c142b3"; got != want {
		t.Errorf("Key = %q, want %q", got, want)
	}
	if got, want := r.Downstream("bank"), "ac7a8cac03c388765213878313c1035e"; got != want {
		t.Errorf("Downstream = %q, want %q", got, want)
	}
}

func TestDownstream(t *testing.T) {
	t.Parallel()
	r := once.Request{Operation: "charge", Scope: once.Anyone, ID: "1"}
	other := r
	other.ID = "2"
	ids := map[string]bool{r.Downstream("a"): true, r.Downstream("b"): true, other.Downstream("a"): true}
	if len(ids) != 3 || !ids[r.Downstream("a")] {
		t.Errorf("ids are %v, want three that stay", ids)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	a, b, other := once.PrintOf(1, []byte("a")), once.PrintOf(1, []byte("b")), once.PrintOf(2, []byte("b"))
	for _, c := range []struct {
		name    string
		p       once.Print
		stored  []byte
		differs bool
	}{
		{"equal", a, once.PrintOf(1, []byte("a")).Bytes(), false},
		{"other content", a, b.Bytes(), true},
		{"other cut", once.PrintOf(1, []byte("a"), []byte("b")), once.PrintOf(1, []byte("ab")).Bytes(), true},
		{"other version", a, other.Bytes(), false},
		{"none asked", once.Print{}, a.Bytes(), false},
		{"none stored", a, nil, false},
	} {
		if got := c.p.Differs(c.stored); got != c.differs {
			t.Errorf("%s: Differs = %t, want %t", c.name, got, c.differs)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	ok := once.Request{Operation: "charge.v2", Scope: []string{"tenant"}, ID: strings.Repeat("x", 255)}
	if err := ok.Validate(); err != nil {
		t.Errorf("Validate = %v", err)
	}
	ok.ID += "x"
	if err := ok.Validate(); !errors.Is(err, once.ErrRequest) {
		t.Errorf("Validate = %v, want ErrRequest", err)
	}
}

// TestRequestIsLoggedAsItsKey: and nothing else of it is.
func TestRequestIsLoggedAsItsKey(t *testing.T) {
	r := once.Request{Operation: "charge", Scope: []string{"tenant"}, ID: "secret"}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("charged", "request", r)
	if got := log.String(); !strings.Contains(got, "request="+r.Key()) || strings.Contains(got, "secret") || strings.Contains(got, "tenant") {
		t.Errorf("logged %s, want the key %s alone", got, r.Key())
	}
}
