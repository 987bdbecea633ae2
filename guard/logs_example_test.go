package guard_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
)

// redisLog writes what go-redis prints to a slog.Logger.
type redisLog struct{ *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.WarnContext(ctx, "redis client", "message", fmt.Sprintf(format, v...))
}

// routeDriverLogs makes the drivers log to logger instead of standard error. Call it
// before any connection is configured.
func routeDriverLogs(logger *slog.Logger) error {
	redis.SetLogger(redisLog{logger})
	return mysql.SetLogger(slog.NewLogLogger(logger.Handler(), slog.LevelWarn))
}

// The drivers of Redis and MySQL print broken connections to standard error by
// themselves, past the Loggers in the configurations of Belay.
func Example_driverLogs() {
	defer teststack.Quiet() // other tests don't want to hear the drivers
	var log testlog.Buffer
	if err := routeDriverLogs(slog.New(slog.NewJSONHandler(&log, nil))); err != nil {
		fmt.Println(err)
		return
	}

	server, err := net.Listen("tcp", "127.0.0.1:0") // which hangs up
	if err != nil {
		fmt.Println(err)
		return
	}
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", server.Addr().String()
	connector, err := mysql.NewConnector(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = connector.Connect(context.Background())
	fmt.Println("MySQL fails:", err != nil)
	server.Close()
	<-hungUp

	client := redis.NewClient(&redis.Options{Addr: server.Addr().String(), MaxRetries: -1}) // nobody listens
	fmt.Println("Redis fails:", client.Ping(context.Background()).Err() != nil)
	client.Close()

	fmt.Println(strings.Contains(log.String(), "packets.go"), strings.Contains(log.String(), "failed to dial"))
	// Output:
	// MySQL fails: true
	// Redis fails: true
	// true true
}
