package relay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/sqldb"
)

// ErrNotWaiting is returned by Retry and Drop if no key waits for a message of that id: it has been
// sent, or somebody else has decided. Retry returns it for a message in another state, too.
var ErrNotWaiting = errors.New("relay: no key waits for this message")

// A Waiting is a message that was not accepted. The others of its key wait for it.
type Waiting struct {
	ID    string
	Key   string
	Topic string
	// Time is when the message was stored.
	Time time.Time
	// Attempts is how often the message was tried and not accepted.
	Attempts int
	// RetryAt is when the message is tried again. Of a dead letter it is when it became one.
	RetryAt time.Time
	// Dead is set for a dead letter. It stays until somebody calls Retry or Drop.
	Dead bool
	// Undecided is set for a dead letter that was not accepted within the Until of its route: it may
	// have taken effect.
	Undecided bool
	// Reason is the last error, in plain ASCII.
	Reason string
}

// maxListed bounds the parked keys that List looks at, beyond those of dead letters.
const maxListed = 10_000

// List returns at most so many messages that were not accepted: dead letters first, the oldest of
// each kind first. Messages behind them are not listed. If more than 10,000 keys wait for their next
// try, it lists messages of any 10,000 of them.
func List(ctx context.Context, db *gorm.DB, limit int) ([]Waiting, error) {
	return list(ctx, db, limit, "SELECT * FROM belay_parked WHERE dead > 0", "SELECT * FROM belay_parked WHERE dead = 0 LIMIT "+strconv.Itoa(maxListed))
}

// ListDead returns at most so many dead letters, the oldest first. It is quick, however many keys wait
// for their next try.
func ListDead(ctx context.Context, db *gorm.DB, limit int) ([]Waiting, error) {
	return list(ctx, db, limit, "SELECT * FROM belay_parked WHERE dead > 0")
}

// list returns the messages of rows of belay_parked, by one query after the other.
func list(ctx context.Context, db *gorm.DB, limit int, parked ...string) (all []Waiting, err error) {
	base, err := message.Open(db, "relay")
	if err != nil {
		return nil, err
	}
	for _, rows := range parked {
		if len(all) >= limit {
			break
		}
		some, err := waiting(ctx, base, rows, limit-len(all))
		if err != nil {
			return nil, fmt.Errorf("relay: list waiting messages: %w", message.Explain(err))
		}
		all = append(all, some...)
	}
	return all, nil
}

// Find returns the message of an id that was not accepted. Its error matches ErrNotWaiting if no key
// waits for that message.
func Find(ctx context.Context, db *gorm.DB, id string) (Waiting, error) {
	base, err := message.Open(db, "relay")
	if err != nil {
		return Waiting{}, err
	}
	list, err := waiting(ctx, base, "SELECT * FROM belay_parked WHERE key_sum = (SELECT key_sum FROM belay_message WHERE message_id = ?) AND message_id = ?", 1, id, id)
	switch {
	case err != nil:
		return Waiting{}, fmt.Errorf("relay: find message %q: %w", id, message.Explain(err))
	case len(list) == 0:
		return Waiting{}, fmt.Errorf("%w: %q", ErrNotWaiting, id)
	}
	return list[0], nil
}

// waiting returns the messages of some rows of belay_parked, the oldest first.
func waiting(ctx context.Context, db sqldb.DB, parked string, limit int, args ...any) (list []Waiting, err error) {
	err = db.ReadCommitted().Query(ctx, "SELECT m.message_id, m.message_key, m.topic, m.created_at, p.attempts, p.retry_at, p.dead, p.reason "+
		"FROM ("+parked+") p JOIN belay_message m ON m.message_id = p.message_id ORDER BY m.id LIMIT ?", append(args, limit), func(scan sqldb.Scan) error {
		var w Waiting
		var key []byte
		var created, retry int64
		var dead state
		err := scan(&w.ID, &key, &w.Topic, &created, &w.Attempts, &retry, &dead, &w.Reason)
		w.Key, w.Time, w.RetryAt = string(key), time.UnixMilli(created), time.UnixMilli(retry)
		w.Dead, w.Undecided = dead != alive, dead == undecided
		list = append(list, w)
		return err
	})
	return list, err
}

// Retry lets relays send a waiting message again, and its followers after it. seen is the message as
// Find, List or ListDead returned it. If Dead or Undecided is another by now, the error matches
// ErrNotWaiting and nothing is done: a message that was only parked then may have taken effect, and
// nobody has asked.
//
// The time until which a dead letter may be sent begins anew, and that of its followers does not: they
// may have been sent by a relay that died since. If it is one since its time was over, it may have taken
// effect: ask the called service first. A message that is no dead letter is tried at once, and keeps its
// time.
func Retry(ctx context.Context, db *gorm.DB, seen Waiting) error {
	return settle(ctx, db, seen.ID, decision{
		seen:   &seen,
		change: "UPDATE belay_message SET created_at = CASE WHEN created_at = {now} THEN {now} - 1 ELSE {now} END WHERE message_id = ?",
		unpark: "UPDATE belay_parked SET attempts = 0, dead = 0, retry_at = {now} WHERE key_sum = ? AND message_id = ?",
		hasten: "UPDATE belay_parked SET retry_at = {now} WHERE key_sum = ? AND message_id = ? AND dead = 0",
	})
}

// Drop deletes a waiting message, and lets relays send its followers. A call that is under way
// goes on, and while a destination is away a relay may have the message in hand, and still send it.
func Drop(ctx context.Context, db *gorm.DB, id string) error {
	return settle(ctx, db, id, decision{
		change: "DELETE FROM belay_message WHERE message_id = ?",
		unpark: "DELETE FROM belay_parked WHERE key_sum = ? AND message_id = ?",
	})
}

// A decision is the statements that settle a message.
type decision struct {
	change, unpark string
	hasten         string   // in place of both, if the message is no dead letter; "" = no such difference
	seen           *Waiting // in which state it must be; nil = in any
}

// settle changes a message, and what parks its key in its name, each by itself: whoever is paused in
// between holds up no relay, and no statement looks into the other table, which could deadlock. The
// change of a message always changes it: MySQL counts no row that stays as it was.
func settle(ctx context.Context, db *gorm.DB, id string, d decision) error {
	base, err := message.Open(db, "relay")
	if err != nil {
		return err
	}
	t := table{db: base}
	if err = t.settle(ctx, id, d); errors.Is(err, ErrNotWaiting) {
		return fmt.Errorf("%w: %q", ErrNotWaiting, id)
	}
	if err != nil {
		return fmt.Errorf("relay: decide message %q: %w", id, message.Explain(err))
	}
	return nil
}

func (t table) settle(ctx context.Context, id string, d decision) error {
	sum, dead, err := t.waiting(ctx, id, d.seen)
	if err != nil {
		return err
	}
	if dead == alive && d.hasten != "" {
		n, err := t.exec(ctx, d.hasten, sum, id)
		if err != nil || n > 0 {
			return err
		}
		_, _, err = t.waiting(ctx, id, d.seen) // it is gone, or a dead letter by now, or stays as it was
		return err
	}
	n, err := t.exec(ctx, d.change, id)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotWaiting
	}
	fail.Point("relay/settling")
	_, err = t.exec(ctx, d.unpark, sum, id)
	return err
}

// waiting returns the key that waits for a message, and the state of the message. Its error matches
// ErrNotWaiting if no key does, or if somebody has seen the message in another state.
func (t table) waiting(ctx context.Context, id string, seen *Waiting) (sum []byte, dead state, err error) {
	err = t.get(ctx, "SELECT p.key_sum, p.dead FROM belay_parked p JOIN belay_message m ON m.message_id = p.message_id WHERE p.message_id = ?",
		[]any{id}, &sum, &dead)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, 0, ErrNotWaiting
	case err != nil:
		return nil, 0, err
	case seen != nil && (seen.Dead != (dead != alive) || seen.Undecided != (dead == undecided)):
		return nil, 0, ErrNotWaiting
	}
	return sum, dead, nil
}
