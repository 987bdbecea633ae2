package chaos_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// Depot sends a Parcel with each change: N grows by one with each success.
type Depot struct {
	ID      int64
	N       int64
	Version dbguard.Version
}

// Parcel is the Nth of its Depot, and shows that its message was committed.
type Parcel struct {
	ID    uint
	No    string `gorm:"size:64;uniqueIndex"` // the call that made it
	Depot int64
	N     int64
}

// Arrival is the effect of a message. No index keeps it from being there twice.
type Arrival struct {
	ID   uint
	Lane string `gorm:"size:64"` // the key of the message
	No   string `gorm:"size:64;index"`
	N    int64
	By   string `gorm:"size:64"` // the process that has applied it
}

// A note is the body of a message: what was made, and its place among those of its key.
type note struct {
	No string `json:"no"`
	N  int64  `json:"n"`
}

// The ways out of messages: the broker's, whose topic is the name of the run's queue, and a function in the
// relay's own process.
const (
	queueName = "BELAY_CHAOS_QUEUE"
	byHand    = "by-hand"
)

// topicOf returns the way out of the messages of a row: one way, as nothing orders what leaves by two.
func topicOf(id int64) string {
	if id%2 == 0 {
		return byHand
	}
	return cmp.Or(os.Getenv(queueName), byHand) // an older worker has none
}

// noteOf returns the message about what was made. Its key is one that the operation holds.
func noteOf(topic, key, no string, n int64) (guard.Message, error) {
	body, err := json.Marshal(note{no, n})
	return guard.Message{Topic: topic, Key: key, Body: body}, err
}

// sendNote sends a note behind the writes of an operation.
func sendNote(ctx context.Context, tx *gorm.DB, topic, key, no string, n int64) error {
	m, err := noteOf(topic, key, no, n)
	if err != nil {
		return err
	}
	return guard.Send(m).Run(ctx, tx)
}

// isPoor draws whether a call fails behind its message.
func (w *worker) isPoor(do string) bool { return draws(w.seed, do+" is poor").IntN(8) == 0 }

// sendParcel is an operation as people write them. Some fail after they have sent.
func sendParcel(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	p := &Parcel{No: do, Depot: t.id}
	if err := countDepot(w, t, do, p).Run(ctx, tx); err != nil {
		return err
	}
	if err := tx.Create(p).Error; err != nil {
		return err
	}
	if err := sendNote(ctx, tx, topicOf(t.id), t.key, do, p.N); err != nil {
		return err
	}
	if w.isPoor(do) {
		return errPoor
	}
	return nil
}

func countDepot(w *worker, t task, do string, p *Parcel) guard.Change {
	return guard.Update(&Depot{ID: t.id}, func(d *Depot) error {
		w.read(do, int64(d.Version))
		d.N++
		p.N = d.N
		return nil
	})
}

// sendByChanges names the message first.
func sendByChanges(ctx context.Context, tx *gorm.DB, w *worker, t task, do string) error {
	p := &Parcel{No: do, Depot: t.id}
	send := guard.SendFunc(func() (guard.Message, error) { return noteOf(topicOf(t.id), t.key, do, p.N) })
	return guard.All(send, countDepot(w, t, do, p), guard.Insert(p)).Run(ctx, tx)
}

func depotRow(id int64, _ string) []guard.Option {
	return []guard.Option{guard.Retries(2), guard.Protects(guard.Row("depots", "id", id))}
}

func sendBySQL(ctx context.Context, db *gorm.DB, w *worker, t task, do string) error {
	tx, n, version, err := readBySQL(ctx, db, w, t, do, "depots")
	if err != nil {
		return err
	}
	if err := guard.UpdateRow(ctx, guard.Row("depots", "id", t.id), version, spell(db, "n = ?"), n+1); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, spell(db, "INSERT INTO parcels (no, depot, n) VALUES (?, ?, ?)"), do, t.id, n+1); err != nil {
		return err
	}
	m, err := noteOf(topicOf(t.id), t.key, do, n+1)
	if err != nil {
		return err
	}
	if err := guard.SendSQL(ctx, m); err != nil {
		return err
	}
	if w.isPoor(do) {
		return errPoor
	}
	return nil
}

// requestSends reports whether a request sends a message, whose id comes from the request.
func requestSends(id int64) bool { return id%8 < 2 }

// serviceNo is what the message of a request is about.
func serviceNo(request int64) string { return fmt.Sprintf("request %d", request) }
