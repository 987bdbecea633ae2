package dbguard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/doctor"
)

// Diagnose returns the findings of [Check] in the tables of models and on the server, and
// further ones: about the isolation level, the user's rights, the pool, time limits, and
// the clock. It is a part of belay.Doctor.
func Diagnose(ctx context.Context, db *gorm.DB, models ...any) []doctor.Finding {
	db = db.Session(&gorm.Session{NewDB: true, Context: ctx})
	var found []doctor.Finding
	err := withServer(ctx, db, func(s *server) error {
		found = append(s.check(), s.diagnose()...)
		if s.dialect.Clock != "" { // SQLite has one writer, in this process
			found = append(found, s.checkPool()...)
			found = append(found, s.checkLimits(db.Dialector)...)
		}
		return nil
	})
	if err != nil {
		return append(found, doctor.DBServer.Failed("the database", err))
	}
	if len(models) == 0 {
		none := fmt.Errorf("no model was given")
		return append(found, doctor.DBModel.Unmade("the tables", none, "give Doctor the models, or each guard.Row, that operations write"))
	}
	return append(found, checkModels(db, models, servesRequests(db))...)
}

// servesRequests reports whether the table of requests exists, which guard.For and guard.Once need.
func servesRequests(db *gorm.DB) bool {
	columns, err := catalogueOf(db).Columns(db.Statement.Context, "belay_once")
	return err == nil && len(columns) > 0
}

func (s *server) diagnose() (found []doctor.Finding) {
	if family := s.session.Family; family.Resembles() {
		found = append(found, doctor.DBFamily.Found("the database", "it is %s, on which Belay is not tested: %s", family, family.Doubt()))
	}
	if s.dialect.Diagnose != nil {
		more, err := s.dialect.Diagnose(s.ctx, s.conn, s.session)
		found = append(found, more...)
		if err != nil {
			found = append(found, doctor.DBServer.Unmade("the server", err, "let the service read the settings of the server"))
		}
	}
	if s.dialect.Clock == "" {
		return found
	}
	began, micros := time.Now(), int64(0)
	if err := s.conn.QueryRowContext(s.ctx, s.dialect.Clock).Scan(&micros); err != nil {
		return append(found, doctor.DBClock.Unmade("the server", err, "let the service read the server's time"))
	}
	return append(found, doctor.CheckClock(doctor.DBClock, "the server", time.UnixMicro(micros), began)...)
}

// manyClosed is the number of connections closed as surplus above which a pool keeps
// too few idle ones.
const manyClosed = 100

func (s *server) checkPool() (found []doctor.Finding) {
	stats, most := s.pool.Stats(), 0
	if err := s.conn.QueryRowContext(s.ctx, s.dialect.MaxConnections).Scan(&most); err != nil {
		found = append(found, doctor.DBPool.Unmade("the server", err, "let the service read max_connections"))
	}
	switch {
	case stats.MaxOpenConnections == 0:
		found = append(found, doctor.DBPool.Found("the pool", "it has no limit, so a crowd takes all connections of the server"))
	case stats.MaxOpenConnections == 1:
		found = append(found, doctor.DBPool.Found("the pool", "it has one connection, so operations on different keys go one after the other"))
	case most > 0 && stats.MaxOpenConnections > most:
		found = append(found, doctor.DBPool.Found("the pool", "it may open %d connections, and the server takes %d from all", stats.MaxOpenConnections, most))
	}
	if stats.MaxIdleClosed > manyClosed {
		found = append(found, doctor.DBPool.Found("the pool", "it keeps too few idle connections: it has closed %d and opened others in their place", stats.MaxIdleClosed))
	}
	return found
}

// checkLimits looks for time limits in the settings with which gorm was opened.
func (s *server) checkLimits(d gorm.Dialector) []doctor.Finding {
	dsn := dsnOf(d)
	switch {
	case dsn == "":
		unknown := errors.New("a pool does not show the DSN that it was opened by")
		return []doctor.Finding{doctor.DBTimeouts.Unmade("the DSN", unknown, "look at the time limits by hand, or let gorm.Open open the pool by a DSN")}
	case s.dialect.Name == "mysql":
		return s.checkMySQLLimits(dsn)
	case !strings.Contains(dsn, "connect_timeout=") && os.Getenv("PGCONNECT_TIMEOUT") == "":
		return []doctor.Finding{doctor.DBTimeouts.Found("the DSN", "it has no connect_timeout").Fixed("add connect_timeout=5")}
	}
	return nil
}

// readLimit is the readTimeout to recommend if there is none.
const readLimit = 30 * time.Second

func (s *server) checkMySQLLimits(dsn string) []doctor.Finding {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil // the pool would not be open
	}
	read := cmp.Or(cfg.ReadTimeout, readLimit)
	below := fmt.Sprintf("innodb_lock_wait_timeout=%d", max(1, int(read.Seconds()*2/3)))
	seconds, unknown := strconv.Atoi(s.session.LockWait)
	waits := time.Duration(seconds) * time.Second
	var missing []string
	for _, limit := range []struct {
		setting string
		value   time.Duration
	}{{"timeout=5s", cfg.Timeout}, {"readTimeout=30s", cfg.ReadTimeout}, {"writeTimeout=30s", cfg.WriteTimeout}} {
		if limit.value == 0 {
			missing = append(missing, limit.setting)
		}
	}
	switch {
	case len(missing) > 0 && waits >= read:
		missing = append(missing, below)
		fallthrough
	case len(missing) > 0:
		return []doctor.Finding{doctor.DBTimeouts.Found("the DSN", "a silent database is waited for without a limit").
			Fixed("add %s", strings.Join(missing, "&"))}
	case unknown != nil:
		return []doctor.Finding{doctor.DBTimeouts.Unread("the session", "innodb_lock_wait_timeout", "set it in the DSN, below readTimeout")}
	case waits >= read:
		return []doctor.Finding{doctor.DBTimeouts.Found("the DSN", "readTimeout is %v, and a statement may wait %d s for a row: its connection is cut then", read, seconds).
			Fixed("set %s in the DSN, or any number below readTimeout", below)}
	}
	return nil
}

// dsnOf returns the DSN of gorm's dialector, "" if it was given a pool instead. It
// imports no dialector: their drivers are the program's choice.
func dsnOf(d gorm.Dialector) string {
	v := reflect.Indirect(reflect.ValueOf(d))
	if v.Kind() != reflect.Struct {
		return ""
	}
	config := reflect.Indirect(v.FieldByName("Config"))
	if config.Kind() != reflect.Struct {
		return ""
	}
	if dsn := config.FieldByName("DSN"); dsn.Kind() == reflect.String {
		return dsn.String()
	}
	return ""
}
