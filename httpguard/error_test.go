package httpguard_test

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
)

func TestError(t *testing.T) {
	for _, tt := range []struct {
		err   error
		again bool
	}{
		{guard.ErrBusy, true},
		{&guard.InterceptionError{}, true},
		{guard.ErrLost, true},
		{guard.ErrUnavailable, true},
		{guard.ErrClosed, true},
		{context.DeadlineExceeded, true},
		{driver.ErrBadConn, true},
		{guard.ErrStale, false},
		{&dbguard.ConflictError{}, false},
		{fmt.Errorf("%w: %w", guard.ErrBusy, &dbguard.ConflictError{}), true},
		{guard.ErrMismatch, false},
		{fmt.Errorf("%w: %w", guard.ErrBusy, context.Canceled), false},
		{guard.ErrUnknown, false},
		{fmt.Errorf("%w: %w", guard.ErrUnknown, guard.ErrBusy), false}, // it may have taken effect
		{&guard.PendingError{Err: guard.ErrUnknown}, true},
		{&guard.PendingError{Undecided: true}, false},
		{guard.ErrNested, false},
		{errors.New("the operation's own"), false},
	} {
		const secret = "INSERT INTO cards VALUES ('4111')"
		err := fmt.Errorf("%s: %w", secret, tt.err)
		w := httptest.NewRecorder()
		w.Header().Set("Content-Length", "3")
		httpguard.Error(w, err)
		var p struct {
			Title  string
			Status int
		}
		if bad := json.Unmarshal(w.Body.Bytes(), &p); bad != nil || p.Title == "" || p.Status != w.Code {
			t.Errorf("%v: body %q, %v", tt.err, w.Body, bad)
		}
		if want := httpguard.Status(err); w.Code != want {
			t.Errorf("%v: %d, want %d", tt.err, w.Code, want)
		}
		if got := w.Header().Get("Retry-After") != ""; got != tt.again {
			t.Errorf("%v: Retry-After is %q", tt.err, w.Header().Get("Retry-After"))
		}
		if kind := w.Header().Get("Content-Type"); kind != "application/problem+json" || w.Header().Get("Content-Length") != "" {
			t.Errorf("%v: headers %v", tt.err, w.Header())
		}
		if body := w.Body.String(); strings.Contains(body, "cards") || strings.Contains(body, "own") {
			t.Errorf("%v: the client is told %q", tt.err, body)
		}
	}
}

func TestErrorOfARepeat(t *testing.T) {
	for _, err := range []error{nil, guard.ErrDuplicate} {
		w := httptest.NewRecorder()
		if httpguard.Error(w, err); w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%v: %d %q, want 200 alone", err, w.Code, w.Body)
		}
	}
}

// TestErrorWhileAnotherCalls: who repeats the request of a guard.Call is not told that nothing was changed,
// and is told to keep the key. Another process may be charging.
func TestErrorWhileAnotherCalls(t *testing.T) {
	for _, err := range []error{guard.ErrBusy, guard.ErrUnavailable, guard.ErrLost, guard.ErrClosed, driver.ErrBadConn, &guard.PendingError{Err: guard.ErrBusy}} {
		w := httptest.NewRecorder()
		httpguard.Error(w, fmt.Errorf("%w: the call of another process", err))
		if body := w.Body.String(); strings.Contains(body, "changed") || !strings.Contains(body, "with the same key") {
			t.Errorf("%v: the client is told %s", err, body)
		}
	}
}
