package httpguard_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/lock"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, http.StatusOK},
		{guard.ErrDuplicate, http.StatusOK},
		{fmt.Errorf("%w: %w", guard.ErrBusy, &lock.HeldError{Key: "k"}), http.StatusConflict},
		{&guard.InterceptionError{}, http.StatusConflict},
		{guard.ErrStale, http.StatusConflict},
		{&dbguard.ConflictError{}, http.StatusConflict},
		{guard.ErrMismatch, http.StatusUnprocessableEntity},
		{context.Canceled, httpguard.StatusClientClosedRequest},
		{fmt.Errorf("%w: %w", guard.ErrBusy, context.Canceled), httpguard.StatusClientClosedRequest},
		{fmt.Errorf("%w: %w", guard.ErrUnknown, context.Canceled), http.StatusGatewayTimeout},
		{fmt.Errorf("%w: %w", guard.ErrLost, context.Canceled), http.StatusServiceUnavailable},
		{fmt.Errorf("%w: %w", guard.ErrBusy, context.DeadlineExceeded), http.StatusConflict},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{guard.ErrUnavailable, http.StatusServiceUnavailable},
		{guard.ErrClosed, http.StatusServiceUnavailable},
		{guard.ErrUnknown, http.StatusGatewayTimeout},
		{guard.ErrNested, http.StatusInternalServerError},
		{errors.New("the operation's own"), http.StatusInternalServerError},
	} {
		if got := httpguard.Status(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}
