//go:build failpoints

package failpoints_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/relay"
)

// messages is how many messages a trial of a relay has, all of one key.
const messages = 3

// A relayTrial is one death of a relay.
type relayTrial struct {
	*testing.T
	*stage
	relayRole
	db *gorm.DB // of the trial alone
}

// killRelay lets a relay die, and another one go on.
func (s *stage) killRelay(t *testing.T, on string, d relayDeath) {
	t.Helper()
	c := &relayTrial{T: t, stage: s}
	c.DSN, c.db = database(t, on)
	c.Redis, c.Sent = s.addrs, filepath.Join(t.TempDir(), "sent")
	testdb.WantNil(t, c.db.Migrator().CreateTable(&Arrival{}))
	testdb.WantNil(t, migrate(t.Context(), c.db))
	c.send()
	role := c.relayRole
	role.Bad = d.bad
	if d.point == "relay/settling" {
		role.Retry = c.deadLetter(role)
	}
	victim := start(t, "victim", fmt.Sprintf("%s:%d", d.point, d.nth), asRelay(role))
	if !victim.died() {
		t.Fatalf("the relay did not die at %s", d.point)
	}
	s.deaths.Add(1)
	if sent := c.sentBodies(); !d.read && len(sent) > 0 {
		t.Errorf("the dead relay has sent %q", sent)
	}
	c.leaseEnds()
	c.noneLost()
	start(t, "survivor", "", asRelay(c.relayRole))
	if d.bad == dead {
		c.decide()
	}
	testwait.Until(t, "no message waits", func() bool { return len(c.waiting()) == 0 })
	c.check()
}

func asRelay(r relayRole) role { return role{Relay: &r} }

// send sends the messages in operations, and one in an operation that is rolled back.
func (c *relayTrial) send() {
	c.Helper()
	g := guardtest.New(c.T, c.db)
	for n := range messages + 1 {
		err := g.Do(c.Context(), "key", func(ctx context.Context, tx *gorm.DB) error {
			if err := guard.Send(guard.Message{Topic: "sold", Body: []byte(bodyOf(n + 1))}).Run(ctx, tx); err != nil {
				return err
			}
			if n == messages {
				return os.ErrInvalid
			}
			return nil
		})
		if (err != nil) != (n == messages) {
			c.Fatal(err)
		}
	}
}

// deadLetter lets a relay make the second message a dead letter, and returns its id.
func (c *relayTrial) deadLetter(r relayRole) (id string) {
	c.Helper()
	p := start(c.T, "relay", "", asRelay(r))
	id = c.awaitDead()
	p.Kill()
	return id
}

// awaitDead waits until the second message is a dead letter.
func (c *relayTrial) awaitDead() (id string) {
	c.Helper()
	testwait.Until(c, "the second message is a dead letter", func() bool {
		list, err := relay.ListDead(c.Context(), c.db, 9)
		testdb.WantNil(c, err)
		if len(list) > 0 {
			id = list[0].ID
		}
		return len(list) > 0
	})
	return id
}

// decide sends the dead letter again, behind which the third message waits.
func (c *relayTrial) decide() {
	c.Helper()
	id := c.awaitDead()
	if arrived := c.arrivals(); !slices.Equal(arrived, []string{bodyOf(1)}) {
		c.Errorf("%q have arrived while the second message is a dead letter", arrived)
	}
	seen, err := relay.Find(c.Context(), c.db, id)
	testdb.WantNil(c, err)
	testdb.WantNil(c, relay.Retry(c.Context(), c.db, seen))
}

// leaseEnds ends the lease of the dead relay, as time does.
func (c *relayTrial) leaseEnds() {
	c.Helper()
	for _, table := range []string{"belay_lane", "belay_relay"} {
		testdb.WantNil(c, c.db.Exec("UPDATE "+table+" SET until_ms = 0").Error)
	}
}

// noneLost checks that each message waits, or has arrived.
func (c *relayTrial) noneLost() {
	c.Helper()
	there := append(c.waiting(), c.arrivals()...)
	for n := range messages {
		if !slices.Contains(there, bodyOf(n+1)) {
			c.Errorf("%s is lost: %q wait, %q have arrived", bodyOf(n+1), c.waiting(), c.arrivals())
		}
	}
}

// check wants each message once, in the order in which they were sent, and none sent a third time, but
// one that was refused on purpose.
func (c *relayTrial) check() {
	c.Helper()
	var want []string
	for n := range messages {
		want = append(want, bodyOf(n+1))
	}
	if got := c.arrivals(); !slices.Equal(got, want) {
		c.Errorf("%q have arrived, want %q", got, want)
	}
	first := make(map[string]int)
	var order []string
	for _, body := range c.sentBodies() {
		if first[body]++; first[body] == 1 {
			order = append(order, body)
		}
		if first[body] > 3 || first[body] > 2 && body != bodyOf(2) {
			c.Errorf("%s was sent %d times", body, first[body])
		}
	}
	if !slices.Equal(order, want) {
		c.Errorf("%q were sent first, want %q", order, want)
	}
}

func (c *relayTrial) arrivals() (bodies []string) {
	c.Helper()
	testdb.WantNil(c, c.db.Model(&Arrival{}).Order("id").Pluck("body", &bodies).Error)
	return bodies
}

func (c *relayTrial) waiting() (bodies []string) {
	c.Helper()
	testdb.WantNil(c, c.db.Table("belay_message").Order("id").Pluck("body", &bodies).Error)
	return bodies
}

// sentBodies returns the bodies in the order in which they were sent.
func (c *relayTrial) sentBodies() []string {
	c.Helper()
	text, err := os.ReadFile(c.Sent)
	if os.IsNotExist(err) {
		return nil
	}
	testdb.WantNil(c, err)
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// sent checks that the message of an operation is stored as often as that has taken effect.
func (c *trial) sent(effect bool) {
	c.Helper()
	if c.do != sending {
		return
	}
	want := int64(0)
	if effect {
		want = 1
	}
	var n int64
	testwait.Until(c, fmt.Sprintf("%d messages wait", want), func() bool {
		testdb.WantNil(c, c.db.Table("belay_message").Count(&n).Error)
		return n == want
	})
}
