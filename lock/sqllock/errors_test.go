package sqllock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belaygo/belay/lock"
)

var kinds = []error{lock.ErrNotSent, lock.ErrDenied, lock.ErrRefused, lock.ErrUnusable, lock.ErrNoAnswer}

// What an error of a statement says of the lock.
func TestClassify(t *testing.T) {
	my := func(n uint16) error { return fmt.Errorf("exec: %w", &mysql.MySQLError{Number: n}) }
	pg := func(code string) error { return fmt.Errorf("exec: %w", &pgconn.PgError{Code: code}) }
	for _, tt := range []struct {
		err  error
		want []error
	}{
		{my(1213), []error{lock.ErrNotSent}},
		{my(1205), []error{lock.ErrNotSent}},
		{my(1290), []error{lock.ErrNotSent}},
		{my(3101), []error{lock.ErrNotSent}},
		{my(1142), []error{lock.ErrNotSent, lock.ErrDenied}},
		{my(1146), []error{lock.ErrNotSent, lock.ErrDenied}},
		{my(1114), []error{lock.ErrRefused}},
		{my(1180), nil}, // in its commit
		{pg("40001"), []error{lock.ErrNotSent}},
		{pg("40P01"), []error{lock.ErrNotSent}},
		{pg("25006"), []error{lock.ErrNotSent}},
		{pg("42501"), []error{lock.ErrNotSent, lock.ErrDenied}},
		{pg("53100"), []error{lock.ErrRefused}},
		{pg("40003"), []error{lock.ErrNoAnswer}}, // of CockroachDB: statement completion unknown
		{pg("57P01"), []error{lock.ErrNoAnswer}}, // it may have been about to wait for a replica
		{my(1053), []error{lock.ErrNoAnswer}},
		{my(8501), []error{lock.ErrNoAnswer}}, // of TiDB: undetermined
		{mysql.ErrInvalidConn, []error{lock.ErrNoAnswer}},
		{errors.New("of an unknown driver"), []error{lock.ErrNoAnswer}},
		{io.ErrUnexpectedEOF, []error{lock.ErrNoAnswer}},
		{&net.OpError{Op: "read", Err: io.EOF}, []error{lock.ErrNoAnswer}},
		{context.DeadlineExceeded, []error{lock.ErrNoAnswer}},
		{context.Canceled, nil},
	} {
		got := classify(tt.err)
		if !errors.Is(got, tt.err) {
			t.Errorf("%v hides %v", got, tt.err)
		}
		for _, kind := range kinds {
			if want := slices.Contains(tt.want, kind); errors.Is(got, kind) != want {
				t.Errorf("%v matches %q: %v, want %v", tt.err, kind, !want, want)
			}
		}
	}
}
