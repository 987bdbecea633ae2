package dbguard

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/gormfront/sqlpool"
)

// Open returns pool as the *gorm.DB that Belay's functions take, such as guard.New, once.Migrate
// and outbox.New, for a program that does not use GORM: it needs no driver of GORM's. Its
// operations write SQL, by guard.SQL or DoSQL. Open asks the server what it is. pool stays the
// caller's to close.
//
// A program that uses GORM passes its own *gorm.DB instead: this one makes no migrations and
// logs nothing.
func Open(ctx context.Context, pool *sql.DB) (*gorm.DB, error) { return sqlpool.Open(ctx, pool) }
