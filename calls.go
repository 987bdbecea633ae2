package belay

import (
	"context"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/notify/outbox"
)

// callsOf returns the source of the heartbeats' calls, or nil if cfg has none.
func callsOf(cfg Config) func(context.Context) (outbox.Calls, error) {
	if !cfg.Calls {
		return nil
	}
	db := cfg.DB
	return func(ctx context.Context) (outbox.Calls, error) {
		pool, err := db.DB()
		if err != nil {
			return outbox.Calls{}, err
		}
		d, _ := sqldb.Of(db.Name())
		b, err := pending.Count(ctx, sqldb.New(pool, d))
		return outbox.Calls(b), err
	}
}
