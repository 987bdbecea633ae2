package teststack

import (
	"context"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
)

// Quiet keeps the drivers from writing to standard error about each connection
// that a test cuts and each dial to a node that it has killed: what failed would
// be lost in that. It is for TestMain.
func Quiet() {
	redis.SetLogger(silence{})
	_ = mysql.SetLogger(&mysql.NopLogger{})
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
