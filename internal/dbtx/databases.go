package dbtx

import (
	"database/sql"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// A database is the remembered state of one database.
type database struct {
	catalogue  catalogue.Cache
	sessions   dialect.Sessions
	keys       protected.Keys
	noSnapshot sync.Once
	pooled     atomic.Bool  // a pooler gives its transactions to any session
	until      atomic.Int64 // when the statements of preludes may be sent together again, in nanoseconds since 1970
	apart      sync.Once    // they were sent one by one
	unjudged   sync.Map     // table name → true: an INSERT into it could not be judged
}

// defers reports whether the statements of preludes are sent together: what they read is of a session
// that is known.
func (d *database) defers() bool {
	return !d.pooled.Load() && time.Now().UnixNano() >= d.until.Load()
}

// apart is for how long the statements of preludes are sent one by one once a prelude has failed for a
// reason that stays.
const apart = time.Minute

// keepApart lets the statements of preludes be sent one by one for a while.
func (d *database) keepApart(reason error, log *slog.Logger) {
	d.until.Store(time.Now().Add(apart).UnixNano())
	d.apart.Do(func() {
		log.Warn("the statements that begin a transaction are sent one by one for a while", "reason", reason)
	})
}

// databases has the database of each pool. gorm keeps plugins in a gorm.Config, so
// databases that are opened with one Config share a plugin.
type databases struct {
	known sync.Map // weak.Pointer[sql.DB] → *database
}

// of returns the database of a pool. It is forgotten with the pool.
func (d *databases) of(pool *sql.DB) *database {
	key := weak.Make(pool)
	if found, ok := d.known.Load(key); ok {
		return found.(*database)
	}
	found, ok := d.known.LoadOrStore(key, new(database))
	if !ok {
		runtime.AddCleanup(pool, func(key weak.Pointer[sql.DB]) { d.known.Delete(key) }, key)
	}
	return found.(*database)
}

// forgetSessions forgets the sessions of all pools, so that each is read again.
func (d *databases) forgetSessions() {
	d.known.Range(func(_, found any) bool {
		found.(*database).sessions.Forget()
		return true
	})
}
