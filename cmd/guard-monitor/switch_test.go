package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A shop is an instance whose locks can be switched. Its engine "dead" grants none.
type shop struct {
	*belay.Belay
	engine switchlock.Engine
}

// deadEngine is an engine whose server is gone.
type deadEngine struct{ lockengine.Engine }

func (deadEngine) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{}, lockengine.ErrNoAnswer
}

// openShop starts an instance of orders that reports to the monitor.
func openShop(t *testing.T, p *process, file, name string) shop {
	t.Helper()
	db := testdb.OpenSQLite(t, file)
	pool, err := db.DB()
	check(t, err)
	check(t, sqllock.Migrate(t.Context(), pool, sqllock.SQLite))
	source, err := sqllock.NewSource(pool, sqllock.SQLite, "orders")
	check(t, err)
	engine, err := switchlock.New(switchlock.Config{
		Source: source, Engines: map[string]lockengine.Engine{"redis": deadEngine{memlock.New()}, "sql": memlock.New()}, First: "redis",
		Lease: time.Second, TTL: 2 * time.Second,
	})
	check(t, err)
	t.Cleanup(func() { check(t, engine.Close(context.Background())) })
	b, err := belay.Open(t.Context(), belay.Config{
		Service: "orders", DB: db, Engine: engine, Monitor: p.url(), MonitorToken: ingestToken,
		Lock: lock.Config{TTL: 2 * time.Second}, Guard: guard.Config{Instance: name},
	})
	check(t, err)
	t.Cleanup(func() { check(t, b.Close(context.Background())) })
	return shop{b, engine}
}

// keeper is what the API says of the switch of orders.
func (p *process) keeper() (k struct {
	Epoch, Instances, Knowing int
	From, To, By              string
	Settled, Late             bool
	Since                     time.Time
}) {
	p.t.Helper()
	var body struct {
		Items []struct {
			Switch any `json:"switch"`
		}
	}
	_, text := p.get("/api/v1/services")
	check(p.t, json.Unmarshal([]byte(text), &body))
	if len(body.Items) == 1 {
		part, err := json.Marshal(body.Items[0].Switch)
		check(p.t, err)
		check(p.t, json.Unmarshal(part, &k))
	}
	return k
}

// TestSwitchIsShown: somebody presses the key since Redis is dead. People see the locks move,
// which instances know of it, and what it has to do with the operations that were refused.
func TestSwitchIsShown(t *testing.T) {
	t.Parallel()
	p := startIngest(t, filepath.Join(t.TempDir(), "monitor.db"))
	file := filepath.Join(t.TempDir(), "shop.db")
	a := openShop(t, p, file, "orders-a")
	openShop(t, p, file, "orders-b")
	p.eventually("both know the first record", func() bool { k := p.keeper(); return k.Epoch == 1 && k.Knowing == 2 })
	if _, page := p.get("/"); !strings.Contains(page, "in redis") || strings.Contains(page, "moving from") {
		t.Errorf("the page does not say where locks are:\n%s", page)
	}

	err := a.Guard.Do(t.Context(), "k", func(context.Context, *gorm.DB) error { return nil })
	if !errors.Is(err, guard.ErrUnavailable) {
		t.Errorf("Do: %v", err)
	}
	_, err = a.engine.To(t.Context(), switchlock.Change{To: "sql", By: "alice"})
	check(t, err)
	p.eventually("people see the locks move", func() bool {
		_, page := p.get("/")
		return strings.Contains(page, "moving from redis to sql") && strings.Contains(page, "by alice")
	})
	p.eventually("both know that it is over", func() bool { k := p.keeper(); return k.Epoch == 2 && k.Settled && k.Knowing == 2 })
	if k := p.keeper(); k.From != "redis" || k.To != "sql" || k.By != "alice" || k.Late || k.Since.IsZero() || k.Instances != 2 {
		t.Errorf("the API has %+v", k)
	}
	p.eventually("the incident says that locks moved", func() bool {
		_, body := p.get("/api/v1/incidents?show=all")
		return strings.Contains(body, `"kind":"switched"`) && strings.Contains(body, `moved from the engine redis to sql`)
	})
	if _, body := p.get("/api/v1/incidents?show=all"); strings.Count(body, `"kind":"switched"`) != strings.Count(body, `"confidence"`) {
		t.Errorf("incidents that are not about the locks, or say it twice: %s", body)
	}
	p.stop(syscall.SIGTERM)
}
