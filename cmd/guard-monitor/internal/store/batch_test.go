package store

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/belaygo/belay/notify"
)

// A sender that may make no more services known stops no other that reports the same service
// in the same transaction.
func TestBatchOfSenders(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.write.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO services SELECT 'job-' || i, 'ci', 0 FROM n`, MaxServices)
	if err != nil {
		t.Fatal(err)
	}
	var batch []*addition
	for n, sender := range []string{"ci", "shop", "ci"} {
		ev := notify.Event{ID: strconv.Itoa(n), Service: "orders", Instance: "i", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
			Key: "order:1", CaughtAt: time.Now(), Count: 1}
		batch = append(batch, &addition{event: ev, raw: []byte("{}"), sender: sender})
	}
	s.addAll(batch)
	if a := batch[0]; a.added || !errors.Is(a.err, ErrManyServices) {
		t.Errorf("of a sender with too many services: %v, %v", a.added, a.err)
	}
	for _, a := range batch[1:] { // by now the service is known
		if !a.added || a.err != nil {
			t.Errorf("of %s: %v, %v", a.sender, a.added, a.err)
		}
	}
}

// A page or a scrape does not wait for another reader for longer than it has time.
func TestCurrentEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.current.turn <- struct{}{} // somebody reads
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Current(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the context's", err)
	}
}
