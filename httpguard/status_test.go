package httpguard_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
	"github.com/belaygo/belay/lock/lockengine"
)

func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, http.StatusOK},
		{guard.ErrDuplicate, http.StatusOK},
		{fmt.Errorf("%w: %w", guard.ErrBusy, &lockengine.HeldError{Key: "k"}), http.StatusConflict},
		{&guard.InterceptionError{}, http.StatusConflict},
		{guard.ErrStale, http.StatusConflict},
		{&dbguard.ConflictError{}, http.StatusConflict},
		{fmt.Errorf("%w: %w", guard.ErrExists, &dbguard.ConflictError{}), http.StatusConflict},
		{guard.ErrMismatch, http.StatusUnprocessableEntity},
		{context.Canceled, 499},
		{fmt.Errorf("%w: %w", guard.ErrBusy, context.Canceled), 499},
		{fmt.Errorf("%w: %w", guard.ErrUnknown, context.Canceled), http.StatusGatewayTimeout},
		{fmt.Errorf("%w: %w", guard.ErrLost, context.Canceled), http.StatusServiceUnavailable},
		{fmt.Errorf("%w: %w", guard.ErrBusy, context.DeadlineExceeded), http.StatusConflict},
		{context.DeadlineExceeded, http.StatusServiceUnavailable},
		{guard.ErrUnavailable, http.StatusServiceUnavailable},
		{guard.ErrClosed, http.StatusServiceUnavailable},
		{guard.ErrUnknown, http.StatusGatewayTimeout},
		{driver.ErrBadConn, http.StatusServiceUnavailable},
		{mysql.ErrInvalidConn, http.StatusServiceUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, http.StatusServiceUnavailable},
		{&mysql.MySQLError{Number: 1040}, http.StatusServiceUnavailable}, // too many connections
		{&mysql.MySQLError{Number: 1053}, http.StatusServiceUnavailable}, // shutdown
		{&mysql.MySQLError{Number: 1205}, http.StatusServiceUnavailable}, // the wait for a lock
		{&mysql.MySQLError{Number: 1213}, http.StatusServiceUnavailable}, // deadlock
		{&mysql.MySQLError{Number: 1290}, http.StatusServiceUnavailable}, // read-only
		{&mysql.MySQLError{Number: 1406}, http.StatusInternalServerError},
		{&pgconn.PgError{Code: "57P01"}, http.StatusServiceUnavailable}, // shutdown
		{&pgconn.PgError{Code: "53300"}, http.StatusServiceUnavailable}, // too many connections
		{&pgconn.PgError{Code: "40P01"}, http.StatusServiceUnavailable}, // deadlock
		{&pgconn.PgError{Code: "25006"}, http.StatusServiceUnavailable}, // read-only
		{&pgconn.PgError{Code: "22001"}, http.StatusInternalServerError},
		{&dbguard.ConflictError{Err: &mysql.MySQLError{Number: 1213}}, http.StatusConflict},
		{fmt.Errorf("%w: %w", guard.ErrUnknown, driver.ErrBadConn), http.StatusGatewayTimeout},
		{&guard.PendingError{Err: guard.ErrUnknown}, http.StatusServiceUnavailable},
		{&guard.PendingError{Err: context.Canceled}, http.StatusServiceUnavailable},
		{&guard.PendingError{Undecided: true}, http.StatusInternalServerError},
		{guard.ErrNested, http.StatusInternalServerError},
		{errors.New("the operation's own"), http.StatusInternalServerError},
	} {
		if got := httpguard.Status(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}
