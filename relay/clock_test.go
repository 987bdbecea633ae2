package relay_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/relay"
)

// TestReadHasOneTime: a pause that ends while a read goes through its key's rows has ended for all of
// them or for none. The clock of this database goes on by a second whenever it is asked.
func TestReadHasOneTime(t *testing.T) {
	t.Parallel()
	const rows = 10
	dsn := teststack.Postgres(t)
	plain := migrated(t, testdb.OpenPostgres(t, dsn))
	store(t, plain, rowsOf("a", rows)...)
	for _, statement := range []string{
		"CREATE SCHEMA clock",
		"CREATE SEQUENCE clock.ticks",
		`CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql
			AS 'SELECT now() + nextval(''clock.ticks'') * interval ''1 second'''`,
		`INSERT INTO belay_parked SELECT key_sum, lane, message_id, 1,
			CAST(EXTRACT(EPOCH FROM now() + interval '67 seconds') * 1000 AS BIGINT), 0, '' FROM belay_message ORDER BY id LIMIT 1`,
	} {
		testdb.WantNil(t, plain.Exec(statement).Error)
	}
	u, err := url.Parse(dsn)
	testdb.WantNil(t, err)
	q := u.Query()
	q.Set("search_path", "clock,pg_catalog,public") // this function stands before PostgreSQL's own
	u.RawQuery = q.Encode()
	db := testdb.OpenPostgres(t, u.String())

	for reads := 1; ; reads++ {
		got, err := relay.Read(bg, db)
		testdb.WantNil(t, err)
		if len(got) == 0 && reads < 200 {
			continue
		}
		if want := idsOf("a", rows); !slices.Equal(got, want) {
			t.Errorf("read %d got %v, want %v", reads, got, want)
		}
		return
	}
}
