package web

import (
	"context"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

// turns are letters that are looked at by one at a time: a look takes them out of
// the queue for a moment, and who counts them then misses some.
type turns struct {
	Letters
	turn chan struct{} // holds one while somebody looks
}

func (t turns) Count(ctx context.Context) (n int, err error) {
	err = t.do(ctx, func() (err error) { n, err = t.Letters.Count(ctx); return err })
	return n, err
}

func (t turns) List(ctx context.Context, limit int) (list []deadletter.Letter, total int, err error) {
	err = t.do(ctx, func() (err error) { list, total, err = t.Letters.List(ctx, limit); return err })
	return list, total, err
}

func (t turns) Replay(ctx context.Context, pick func(*deadletter.Letter) bool) (n int, err error) {
	err = t.do(ctx, func() (err error) { n, err = t.Letters.Replay(ctx, pick); return err })
	return n, err
}

func (t turns) do(ctx context.Context, look func() error) error {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-t.turn }()
	return look()
}
