package place

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// redisLog writes what go-redis prints to a slog.Logger.
type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.WarnContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
}

// routeDriverLogs has the drivers log to logger instead of standard error. Call it
// before any connection is configured.
func routeDriverLogs(logger *slog.Logger) error {
	redis.SetLogger(redisLog{logger})
	return mysql.SetLogger(slog.NewLogLogger(logger.Handler(), slog.LevelWarn))
}
