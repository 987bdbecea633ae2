package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/pgsync"
	"github.com/belaygo/belay/internal/sqldb"
)

// longest is how far off a retry_at or until_ms can be. What is further off comes from before the
// database's clock was set back.
const longest = time.Hour

// Migrate creates the tables of messages and relays that do not exist. The statements are in the
// folder internal/message/schema, for other tools of migration.
func Migrate(ctx context.Context, db *gorm.DB) error {
	t, err := message.Open(db, "relay")
	if err == nil {
		err = message.Migrate(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// Check returns an error unless the tables are there, with all their columns, can be read, and keep
// messages apart.
func Check(ctx context.Context, db *gorm.DB) error {
	t, err := message.Open(db, "relay")
	if err == nil {
		err = message.Check(ctx, t)
	}
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// A table is the tables of messages, as one relay sees them.
type table struct {
	db    sqldb.DB
	owner string // this relay
}

// sql replaces {now} by the database's time, in milliseconds since 1970.
func (t table) sql(statement string) string {
	return strings.ReplaceAll(statement, "{now}", t.db.Now(time.Millisecond))
}

// exec changes rows by one statement, and returns how many.
func (t table) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	res, err := t.db.ReadCommitted().Exec(ctx, t.sql(statement), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// get reads one row, and locks none, whatever the isolation level of the session.
func (t table) get(ctx context.Context, statement string, args []any, dest ...any) error {
	return t.db.ReadCommitted().QueryRow(ctx, t.sql(statement), args, dest...)
}

// A row is a message in the table. Its id says only where it is: after a failover that lost
// the last rows, MySQL and MariaDB give their ids to other messages.
type row struct {
	id       int64
	lane     int
	sum      message.Sum
	msg      Message
	headers  string
	age      time.Duration // at the time of the read
	read     time.Time     // before the read
	attempts int
	parked   bool  // the key has a row in belay_parked
	bad      error // the row is not as Insert writes it
	strikes  int   // see atFault
	accepted int64 // by its route, at the last strike
}

func (r row) size() int { return len(r.msg.Body) + len(r.headers) + 512 }

// A want is what to read of a lane: so many rows, from the lowest id on, but those in hand.
type want struct {
	lane, limit int
	inHand      []int64
}

// errFull ends a read: the rest does not fit.
var errFull = errors.New("relay: window is full")

// read returns the rows of some lanes whose keys are not parked, in their order, and reports
// whether it has left some for want of room.
func (t table) read(ctx context.Context, wants []want, room int) (rows []row, cut bool, err error) {
	parts := make([]string, len(wants))
	for n, w := range wants {
		parts[n] = t.selection(w)
	}
	began := time.Now()
	err = t.db.ReadCommitted().Read(ctx, func(c sqldb.Conn) error {
		if err := t.plan(ctx, c); err != nil {
			return err
		}
		return sqldb.Query(ctx, c, t.sql(strings.Join(parts, " UNION ALL ")), nil, func(scan sqldb.Scan) error {
			r := row{read: began}
			if err := r.scan(scan); err != nil {
				return err
			}
			if room -= r.size(); room < 0 && len(rows) > 0 {
				return errFull
			}
			rows = append(rows, r)
			return nil
		})
	})
	full := errors.Is(err, errFull)
	if full {
		err = nil
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.id, b.id) }) // UNION ALL promises no order
	return rows, full, err
}

// plan keeps PostgreSQL from sorting a whole lane. Its statistics are those of a moment when the
// table was almost empty, as often as not: it would expect a handful of rows. Where millions wait it would
// compile the read anew each time, which takes ten times as long as the read.
func (t table) plan(ctx context.Context, c sqldb.Conn) error {
	if t.db.Name != "postgres" {
		return nil
	}
	var none string
	const off = ", 'off', true)"
	return c.QueryRowContext(ctx, "SELECT concat(set_config('enable_sort'"+off+", set_config('enable_bitmapscan'"+off+
		", set_config('enable_seqscan'"+off+", set_config('enable_hashjoin'"+off+", set_config('enable_mergejoin'"+off+
		", set_config('jit'"+off+")").Scan(&none)
}

// selection is a query for rows of one lane. The lane is a range, since PostgreSQL would else know
// that the order of the primary key is right, too, and search all lanes for rows of this one. MySQL
// would join by hashing all of them. The time is asked once, in a query of its own: PostgreSQL's
// goes on during the read, and would let a key's pause end behind its first rows.
func (t table) selection(w want) string {
	lane, order, index := fmt.Sprintf("= %d", w.lane), "m.id", ""
	switch t.db.Name {
	case "postgres":
		lane, order = fmt.Sprintf("BETWEEN %d AND %d", w.lane, w.lane), "m.lane, m.id"
	case "mysql":
		index = "FORCE INDEX (PRIMARY) "
	}
	others := ""
	if len(w.inHand) > 0 {
		others = " AND m.id NOT IN (" + numbers(w.inHand) + ")"
	}
	s := fmt.Sprintf(`SELECT m.id, m.lane, m.key_sum, m.message_id, m.message_key, m.topic, m.headers, m."body", m.created_at, {now} - m.created_at, `+
		`CASE WHEN p.message_id = m.message_id THEN p.attempts ELSE 0 END, CASE WHEN p.key_sum IS NULL THEN 0 ELSE 1 END `+
		`FROM belay_message m LEFT JOIN belay_parked p %sON p.key_sum = m.key_sum `+
		`WHERE m.lane %s%s AND (p.key_sum IS NULL OR p.dead = 0 AND NOT (p.retry_at BETWEEN (SELECT {now} + 1) AND (SELECT {now} + %d))) `+
		`ORDER BY %s LIMIT %d`, index, lane, others, longest.Milliseconds(), order, w.limit)
	if t.db.Name == "sqlite" { // it knows no parentheses there
		return "SELECT * FROM (" + s + ")"
	}
	return "(" + s + ")"
}

func (r *row) scan(scan sqldb.Scan) error {
	var sum, key []byte
	var created, age int64
	if err := scan(&r.id, &r.lane, &sum, &r.msg.ID, &key, &r.msg.Topic, &r.headers, &r.msg.Body, &created, &age, &r.attempts, &r.parked); err != nil {
		return err
	}
	copy(r.sum[:], sum)
	r.msg.Key, r.msg.Time, r.msg.Attempts = string(key), time.UnixMilli(created), r.attempts
	r.age = time.Duration(age) * time.Millisecond
	if r.headers == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(r.headers), &r.msg.Headers); err != nil { // the others of the read go on
		r.bad = fmt.Errorf("%w: its headers: %w", ErrRejected, err)
	}
	return nil
}

// beat says that this relay lives. Its COMMIT is acknowledged after those of all rows that were
// read before: it always writes, and so waits for the replicas that these wait for.
func (t table) beat(ctx context.Context, lease time.Duration) error {
	update := "ON DUPLICATE KEY UPDATE"
	if t.db.Name != "mysql" {
		update = "ON CONFLICT (owner) DO UPDATE SET"
	}
	statement := t.sql("INSERT INTO belay_relay (owner, beats, until_ms) VALUES (?, 0, {now} + ?) " + update +
		" beats = belay_relay.beats + 1, until_ms = {now} + ?")
	args := []any{t.owner, lease.Milliseconds(), lease.Milliseconds()}
	if !t.db.Standby {
		_, err := t.db.ReadCommitted().Exec(ctx, statement, args...)
		return err
	}
	return t.db.InTx(ctx, func(c sqldb.Conn) error {
		if _, err := c.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
		_, err := pgsync.Barrier(ctx, c)
		return err
	})
}

// leases returns how many relays live, and all lanes.
func (t table) leases(ctx context.Context) (relays int, all []lease, err error) {
	err = t.db.QueryRow(ctx, t.sql("SELECT COUNT(*) FROM belay_relay WHERE until_ms BETWEEN {now} + 1 AND {now} + ?"), []any{longest.Milliseconds()}, &relays)
	if err != nil {
		return 0, nil, err
	}
	err = t.db.Query(ctx, t.sql("SELECT lane, owner, until_ms - {now} FROM belay_lane ORDER BY lane"), nil, func(scan sqldb.Scan) error {
		var l lease
		err := scan(&l.lane, &l.owner, &l.left)
		if err == nil && l.lane >= 0 && l.lane < message.Lanes {
			all = append(all, l)
		}
		return err
	})
	return relays, all, err
}

// A failure is a row that was not accepted.
type failure struct {
	row
	pause  time.Duration
	counts bool // as an attempt
	dead   state
	reason string
}

// A state says whether a message is a dead letter. It is the column dead of belay_parked.
type state int

const (
	alive     state = iota
	rejected        // by its route: it is a dead letter
	undecided       // it was not accepted in time, and may have taken effect: it is a dead letter
)

// tried returns how often the row was tried by now.
func (f failure) tried() int {
	if f.counts {
		return f.attempts + 1
	}
	return f.attempts
}

// remove deletes rows that were accepted. The message ids exclude a row whose id was given out again:
// at worst the condition matches one of these messages under the id of another. COALESCE keeps the
// database from using the index on message_id, by which relays could deadlock. A scan of the table
// would wait for messages that are not committed yet.
func (t table) remove(ctx context.Context, done []row) error {
	ids := make([]int64, len(done))
	args := make([]any, len(done))
	for n, r := range done {
		ids[n], args[n] = r.id, r.msg.ID
	}
	from := "DELETE FROM belay_message "
	if t.db.Name == "mysql" { // only a DELETE of several tables takes FORCE INDEX
		from = "DELETE belay_message FROM belay_message FORCE INDEX (PRIMARY) "
	}
	_, err := t.exec(ctx, from+"WHERE id IN ("+numbers(ids)+") AND COALESCE(message_id, '') IN ("+sqldb.List("?", ", ", len(done))+")", args...)
	return err
}

// maxParked bounds the rows of one statement that parks, or unparks, keys: SQLite takes no longer one.
const maxParked = 256

// park parks the keys of at most maxParked rows that were not accepted. A relay whose lane has gone to
// another one parks nothing, since that one may have sent the message; if it does at the same time,
// unparkGone ends it.
func (t table) park(ctx context.Context, failed []failure) error {
	var rows strings.Builder
	args := make([]any, 0, 2*len(failed)+1)
	for n, f := range failed {
		if n > 0 {
			rows.WriteString(" UNION ALL ")
		}
		fmt.Fprintf(&rows, "SELECT %d AS id, %d AS attempts, {now} + %d AS retry_at, %d AS dead, ? AS reason", f.id, f.tried(), f.pause.Milliseconds(), f.dead)
		args = append(args, f.reason)
	}
	for _, f := range failed {
		args = append(args, f.msg.ID)
	}
	join, update, value := "JOIN", "ON CONFLICT (key_sum) DO UPDATE SET", "excluded.%s"
	if t.db.Name == "mysql" {
		join, update, value = "STRAIGHT_JOIN", "ON DUPLICATE KEY UPDATE", "VALUES(%s)"
	}
	columns := []string{"message_id", "attempts", "retry_at", "dead", "reason"}
	for n, c := range columns {
		columns[n] = c + " = " + fmt.Sprintf(value, c)
	}
	_, err := t.exec(ctx, "INSERT INTO belay_parked (key_sum, lane, message_id, attempts, retry_at, dead, reason) "+
		"SELECT m.key_sum, m.lane, m.message_id, f.attempts, f.retry_at, f.dead, f.reason FROM ("+rows.String()+") f "+
		join+" belay_message m ON m.id = f.id "+join+" belay_lane l ON l.lane = m.lane "+
		"WHERE m.message_id IN ("+sqldb.List("?", ", ", len(failed))+") AND l.owner = ? "+update+" "+strings.Join(columns, ", "), append(args, t.owner)...)
	return err
}

// parkedDead returns the ids of those messages among at most maxParked ones, that were to be parked as
// dead letters, which are. The others are gone, or in a lane of another relay.
func (t table) parkedDead(ctx context.Context, failed []failure) (map[string]bool, error) {
	var sums, ids []any
	for _, f := range failed {
		if f.dead != alive {
			sums, ids = append(sums, f.sum[:]), append(ids, f.msg.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	marks, dead := sqldb.List("?", ", ", len(ids)), make(map[string]bool, len(ids))
	err := t.db.ReadCommitted().Query(ctx, "SELECT message_id FROM belay_parked WHERE key_sum IN ("+marks+") AND message_id IN ("+marks+") AND dead > 0",
		append(sums, ids...), func(scan sqldb.Scan) error {
			var id string
			err := scan(&id)
			dead[id] = true
			return err
		})
	return dead, err
}

// A parked is a key that is parked in the name of a message.
type parked struct {
	sum       message.Sum
	messageID string
}

// unpark ends what parks at most maxParked keys in the names of messages that are gone.
func (t table) unpark(ctx context.Context, keys []parked) error {
	args := make([]any, 2*len(keys))
	for n, k := range keys {
		args[n], args[len(keys)+n] = k.sum[:], k.messageID
	}
	marks := sqldb.List("?", ", ", len(keys))
	_, err := t.exec(ctx, "DELETE FROM belay_parked WHERE key_sum IN ("+marks+") AND message_id IN ("+marks+")", args...)
	return err
}

// unparkGone ends what parks keys of some lanes in the names of messages that are gone, some of them
// each time. It is there for relays that died, or were paused, between two statements.
func (t table) unparkGone(ctx context.Context, lanes []int) error {
	var gone []parked
	err := t.db.Query(ctx, "SELECT p.key_sum, p.message_id FROM belay_parked p LEFT JOIN belay_message m ON m.message_id = p.message_id "+
		"WHERE p.lane IN ("+numbers(lanes)+") AND m.id IS NULL LIMIT "+strconv.Itoa(maxParked), nil, func(scan sqldb.Scan) error {
		k, err := scanParked(scan)
		gone = append(gone, k)
		return err
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	return t.unpark(ctx, gone)
}

func scanParked(scan sqldb.Scan) (k parked, err error) {
	var sum []byte
	err = scan(&sum, &k.messageID)
	copy(k.sum[:], sum)
	return k, err
}

// hasten ends the pauses of keys that wait for a route. COALESCE keeps the database from using the index
// on dead, by which it would lock rows of other relays' lanes.
func (t table) hasten(ctx context.Context, lanes []int, reason string) error {
	_, err := t.exec(ctx, "UPDATE belay_parked SET retry_at = {now} WHERE lane IN ("+numbers(lanes)+") AND COALESCE(dead, 0) = 0 AND reason = ? AND retry_at > {now}", reason)
	return err
}

func numbers[N int | int64](list []N) string {
	var b strings.Builder
	for n, one := range list {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(int64(one), 10))
	}
	return b.String()
}
