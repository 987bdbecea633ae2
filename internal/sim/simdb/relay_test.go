package simdb_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/sim/simdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/relay"
)

// A box takes messages as a relay sends them: it refuses the first try of each "b", and rejects each "x".
type box struct {
	mu   sync.Mutex
	took []string
	seen map[string]bool
}

func (b *box) Publish(_ context.Context, m relay.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch body := string(m.Body); {
	case body == "x":
		return relay.ErrRejected
	case body == "b" && !b.seen[m.ID]:
		b.seen[m.ID] = true
		return errors.New("not now")
	}
	b.took = append(b.took, string(m.Body))
	return nil
}

// TestRelay: two relays send what operations have committed, in order, and park what is not accepted.
func TestRelay(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(open)
		text, err := os.ReadFile("../../message/schema/" + db.Name() + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		sdb.Exec(strings.Split(string(text), ";\n")...)
		locker, err := lock.New(memlock.New(), lock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer locker.Close(t.Context())
		g, err := guard.New(db, locker, guard.Config{Service: "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(t.Context())
		b := &box{seen: make(map[string]bool)}
		for range 2 {
			r, err := relay.New(connect(open), relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: b}}})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close(context.WithoutCancel(t.Context()))
		}
		for _, body := range []string{"a", "b", "c", "x", "d"} {
			if err := g.Apply(t.Context(), "k", guard.Send(guard.Message{Topic: "t", Body: []byte(body)})); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Minute)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if want := []string{"a", "b", "c"}; !slices.Equal(b.took, want) {
			t.Errorf("sent %q, want %q", b.took, want)
		}
		parked := sdb.Rows("belay_parked")
		if left := sdb.Rows("belay_message"); len(left) != 2 || len(parked) != 1 || parked[0]["dead"] != int64(1) {
			t.Errorf("%d messages wait, and parked are %v, want 2 behind a dead letter", len(left), parked)
		}
	})
}
