package grpcguard_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestCallInPart: no repeat of a call that a procedure has let take effect in part is asked for,
// whatever its handler returns. It would find nothing out, until the call is purged, and then run
// beside that part.
func TestCallInPart(t *testing.T) {
	t.Parallel()
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	testdb.WantNil(t, errors.Join(once.Migrate(bg, db), db.AutoMigrate(&Account{}), db.Create(&Account{ID: 7, Cents: 1000}).Error))
	testdb.WantNil(t, db.Exec("CREATE PROCEDURE ends() BEGIN COMMIT; END").Error)
	locks := guardtest.New(t, db)
	for ran, g := range []*guard.Guard{locks.Guard, locks.Peer(t, db)} {
		b, lock := newBank(t), ""
		b.db, b.guard = db, &guardtest.Guard{Guard: g}
		b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
			r, _ := guard.Request(ctx)
			lock = r.Key()
			left, err := withdraw(ctx, cents)
			return left, errors.Join(err, guard.Tx(ctx).Exec("CALL ends()").Error)
		})
		b.call(pay, 10, key("k")...).wantCode(t, codes.Internal, "")
		locks.Forget(lock) // it is left to its ttl
		b.wantRan(1-int64(ran), 990)
	}
}

// TestRowThatIsThere: a conflict that the handler has passed over where the database ends the
// transaction is answered as one on a row that a key names.
func TestRowThatIsThere(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	db := testdb.OpenPostgres(t, teststack.Postgres(t))
	testdb.WantNil(t, errors.Join(once.Migrate(bg, db), db.AutoMigrate(&Receipt{}), db.Create(&Receipt{No: "1"}).Error))
	b.guard = guardtest.New(t, db)
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		_ = guard.Insert(&Receipt{No: "1"}).Run(ctx, guard.Tx(ctx))
		return wrapperspb.Int64(cents), nil
	})
	b.call(pay, 10, key("k")...).wantCode(t, codes.FailedPrecondition, "ROW_EXISTS")
}

// TestRowThatIsStale: a row that another writer has changed may be read again by a repeat, which is
// asked for.
func TestRowThatIsStale(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	testdb.WantNil(t, b.db.Create(&Account{ID: 8}).Error)
	b.serve(func(ctx context.Context, cents int64) (proto.Message, error) {
		_ = guard.Tx(ctx).Delete(&[]Account{{ID: 7, Version: 1}, {ID: 8, Version: 2}}).Error
		return wrapperspb.Int64(cents), nil
	})
	b.call(pay, 10, key("k")...).wantCode(t, codes.Unavailable, "again in 1s")
	b.wantRan(1, 1000)
}
