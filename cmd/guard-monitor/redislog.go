package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog writes what go-redis prints by itself to the log. The watcher says what
// becomes of a node, so it is for debugging only.
type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.DebugContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
}
