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

	"github.com/belaygo/belay/lock/lockengine"
)

var kinds = []error{lockengine.ErrNotSent, lockengine.ErrDenied, lockengine.ErrRefused, lockengine.ErrUnusable, lockengine.ErrNoAnswer}

// What an error of a statement says of the lock.
func TestClassify(t *testing.T) {
	my := func(n uint16) error { return fmt.Errorf("exec: %w", &mysql.MySQLError{Number: n}) }
	pg := func(code string) error { return fmt.Errorf("exec: %w", &pgconn.PgError{Code: code}) }
	for _, tt := range []struct {
		err  error
		want []error
	}{
		{my(1213), []error{lockengine.ErrNotSent}},
		{my(1205), []error{lockengine.ErrNotSent}},
		{my(1290), []error{lockengine.ErrNotSent}},
		{my(3101), []error{lockengine.ErrNotSent}},
		{my(1142), []error{lockengine.ErrNotSent, lockengine.ErrDenied}},
		{my(1146), []error{lockengine.ErrNotSent, lockengine.ErrDenied}},
		{my(1114), []error{lockengine.ErrRefused}},
		{my(1180), nil}, // in its commit
		{pg("40001"), []error{lockengine.ErrNotSent}},
		{pg("40P01"), []error{lockengine.ErrNotSent}},
		{pg("25006"), []error{lockengine.ErrNotSent}},
		{pg("42501"), []error{lockengine.ErrNotSent, lockengine.ErrDenied}},
		{pg("53100"), []error{lockengine.ErrRefused}},
		{pg("40003"), []error{lockengine.ErrNoAnswer}}, // of CockroachDB: statement completion unknown
		{pg("57P01"), []error{lockengine.ErrNoAnswer}}, // it may have been about to wait for a replica
		{my(1053), []error{lockengine.ErrNoAnswer}},
		{my(8501), []error{lockengine.ErrNoAnswer}}, // of TiDB: undetermined
		{mysql.ErrInvalidConn, []error{lockengine.ErrNoAnswer}},
		{errors.New("of an unknown driver"), []error{lockengine.ErrNoAnswer}},
		{io.ErrUnexpectedEOF, []error{lockengine.ErrNoAnswer}},
		{&net.OpError{Op: "read", Err: io.EOF}, []error{lockengine.ErrNoAnswer}},
		{context.DeadlineExceeded, []error{lockengine.ErrNoAnswer}},
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
