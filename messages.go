package belay

import (
	"context"

	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/relay"
)

// messagesOf returns the source of the heartbeats' messages, or nil if cfg has no routes for any.
func messagesOf(cfg Config) func(context.Context) (outbox.Messages, error) {
	if len(cfg.Messages) == 0 {
		return nil
	}
	db := cfg.DB
	return func(ctx context.Context) (outbox.Messages, error) {
		b, err := relay.Count(ctx, db)
		return outbox.Messages(b), err
	}
}
