package teststack

import (
	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9/logging"
)

// Quiet keeps the drivers from writing to standard error about each connection
// that a test cuts and each dial to a node that it has killed: what failed would
// be lost in that. It is for TestMain.
func Quiet() {
	logging.Disable() // of the Redis client
	_ = mysql.SetLogger(&mysql.NopLogger{})
}
