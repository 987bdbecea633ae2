package wild

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
)

// TestWriteSkewIsNoOverlap: PostgreSQL at SERIALIZABLE refuses one of two writers of
// different rows. Each has its lock from the beginning to the end.
func TestWriteSkewIsNoOverlap(t *testing.T) {
	on(t, "postgres", func(e *env) {
		e.stocks()
		e = newEnv(e.t, e.database, e.open, altered("default_transaction_isolation = 'serializable'")(e))
		op := func(own int, between func()) guard.Op {
			return func(_ context.Context, tx *gorm.DB) error {
				both, err := load(tx, 1, 2)
				if err != nil {
					return err
				}
				between()
				return tx.Model(&both[own-1]).Update("name", "x").Error
			}
		}
		err := e.Do(bg, "stock:1", op(1, func() {
			e.must(e.peer.Do(bg, "stock:2", op(2, func() {}), guard.Protects(&Stock{ID: 2})))
		}), guard.Protects(&Stock{ID: 1}))
		e.want(err, "failed", 0)
		if !dbtx.Retryable(err) {
			e.t.Errorf("%v can't be retried", err)
		}
	})
}

// wrapped is a ConnPool as plugins make it: gorm.io/sharding wraps that of every
// statement, begins no transaction of its own inside one, and commits what it wraps.
type wrapped struct{ gorm.ConnPool }

func (w *wrapped) BeginTx(context.Context, *sql.TxOptions) (gorm.ConnPool, error) { return w, nil }

func (w *wrapped) Commit() error   { return w.ConnPool.(gorm.TxCommitter).Commit() }
func (w *wrapped) Rollback() error { return w.ConnPool.(gorm.TxCommitter).Rollback() }

// wrapping has every connection wrapped inside Do.
func wrapping(c gorm.Config) gorm.Option {
	return using{c, func(db *gorm.DB) error {
		wrap := func(db *gorm.DB) {
			if _, done := db.Statement.ConnPool.(*wrapped); !done && dbtx.FromContext(db.Statement.Context) != nil {
				db.Statement.ConnPool = &wrapped{db.Statement.ConnPool}
			}
		}
		return errors.Join(
			db.Callback().Create().Before("*").Register("wrap", wrap),
			db.Callback().Update().Before("*").Register("wrap", wrap),
		)
	}}
}

// using is an option for a plugin, too.
type using struct {
	gorm.Config
	plugin func(*gorm.DB) error
}

func (u using) Apply(c *gorm.Config) error        { return u.Config.Apply(c) }
func (u using) AfterInitialize(db *gorm.DB) error { return u.plugin(db) }

// TestPluginThatWrapsTheConnection: its statements are judged as any other.
func TestPluginThatWrapsTheConnection(t *testing.T) {
	for name, config := range map[string]gorm.Config{"plain": {}, "SkipDefaultTransaction": {SkipDefaultTransaction: true}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				e.migrate(&Account{})
				e.wantOnce("a", insert(Account{Email: "a"}))
			}, wrapping(config))
		})
	}
}

func TestTranslateErrorInDo(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Account{})
		e.create(&Account{Email: "a"}, &Account{Email: "b"})
		op := func(tx *gorm.DB) error {
			return tx.Model(&Account{}).Where("email = 'b'").Update("email", "a").Error
		}
		err := e.Do(bg, "a", func(_ context.Context, tx *gorm.DB) error { return op(tx) })
		if want := e.db.Transaction(op); errors.Is(want, gorm.ErrDuplicatedKey) != errors.Is(err, gorm.ErrDuplicatedKey) {
			e.t.Errorf("error is %v (%T), in gorm's own transaction %v", err, err, want)
		}
	}, &gorm.Config{TranslateError: true})
}
