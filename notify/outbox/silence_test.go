package outbox_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
)

// commit is a COMMIT with the byte that comes before the text of a query; READ
// COMMITTED contains the word, too.
const commit = "\x03COMMIT"

// The answer to one of the relay's statements is lost while the connection
// stays open, and nothing in the DSN limits a read. The relay logs it, goes on
// with another connection, and loses none of the pool's.
func TestRelaySurvivesALostAnswer(t *testing.T) {
	t.Parallel()
	inTx := []string{"SET TRANSACTION", "START TRANSACTION", "FOR UPDATE", "UPDATE belay_outbox", commit, "DELETE FROM belay_outbox"}
	for name, server := range map[string]struct {
		dsn        func(testing.TB) string
		open       func(testing.TB, string, ...gorm.Option) *gorm.DB
		statements []string
	}{
		"mysql":    {teststack.MySQL, testdb.OpenMySQL, inTx},
		"mysql9":   {teststack.MySQL9, testdb.OpenMySQL, inTx},
		"postgres": {teststack.Postgres, testdb.OpenPostgres, []string{"UPDATE belay_outbox", "DELETE FROM belay_outbox"}},
	} {
		for _, statement := range server.statements {
			t.Run(name+"/"+strings.Trim(statement, "\x03"), func(t *testing.T) {
				t.Parallel()
				dsn := server.dsn(t)
				direct := migrated(t, server.open(t, dsn))
				publish(t, open(t, direct, outbox.Config{}), 1)
				link := testdb.NewLink(t, testdb.AddrOf(t, dsn))
				db := server.open(t, patient(t, link.Through(t, dsn)))
				testSurvival(t, direct, db, link.Swallow(statement))
			})
		}
	}
}

// An idle relay commits as well.
func TestIdleRelaySurvivesALostAnswer(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := migrated(t, testdb.OpenMySQL(t, dsn))
	link := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenMySQL(t, patient(t, link.Through(t, dsn)))
	testSurvival(t, direct, db, link.Swallow(commit))
}

func testSurvival(t *testing.T, direct, db *gorm.DB, swallowed <-chan struct{}) {
	t.Helper()
	var log testlog.Buffer
	var relay recorder
	o := open(t, db, outbox.Config{
		Relay: &relay, RelayTimeout: 500 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}.With(outbox.Limits{PollInterval: 10 * time.Millisecond, WriteTimeout: 500 * time.Millisecond}))
	<-swallowed
	publish(t, open(t, direct, outbox.Config{}), 2)
	testwait.Until(t, "the relay goes on", func() bool { return relay.tookAll(2) && rows(t, direct) == 0 })
	if !strings.Contains(log.String(), "events are not relayed") {
		t.Errorf("the relay has not logged that it could not go on:\n%s", log.String())
	}
	if err := o.Close(t.Context()); err != nil {
		t.Error(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "all connections are back in the pool", func() bool { return pool.Stats().InUse == 0 })
}

// patient returns dsn without a limit for reads.
func patient(t *testing.T, dsn string) string {
	t.Helper()
	if strings.HasPrefix(dsn, "postgres") {
		return dsn
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ReadTimeout = 0
	return cfg.FormatDSN()
}
