package table1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/belaygo/belay/benchmark/internal/stage"
)

// An accident is the death of a master in the middle of a round.
type accident struct {
	stage  *stage.Stage
	master stage.Master
	order  string // whose holder stands still
	after  int    // answers before it happens

	killed chan struct{} // closed once the master is dead
	once   sync.Once
	at     time.Time // when it died
}

const (
	accidentLimit = requestLimit // of each of its steps
	accidentTick  = 2 * time.Millisecond
)

// happen kills the master when a part of the requests has been answered and the
// chosen request stands still with its lock. It lets that go on after another
// instance has written the order. Whatever fails, no request is left waiting.
func (a *accident) happen(ctx context.Context, answered func(context.Context) (int, error)) (err error) {
	defer a.letGo()
	defer func() {
		e := a.control(ctx, http.MethodPost, "/resume?order="+a.order)
		err = errors.Join(err, e)
	}()
	if err := a.control(ctx, http.MethodGet, "/held?order="+a.order); err != nil {
		return fmt.Errorf("wait for the request that stands still: %w", err)
	}
	err = stage.Poll(ctx, accidentTick, accidentLimit, fmt.Sprintf("%d requests are answered", a.after), func() (bool, error) {
		n, err := answered(ctx)
		return n >= a.after, err
	})
	if err != nil {
		return err
	}
	if err := a.master.Kill(); err != nil {
		return err
	}
	a.at = time.Now()
	a.letGo()
	return stage.Poll(ctx, accidentTick, accidentLimit, "another instance writes the order", func() (bool, error) {
		var n int
		err := a.stage.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE no = ?", a.order).Scan(&n)
		return n > 0, err
	})
}

func (a *accident) letGo() { a.once.Do(func() { close(a.killed) }) }

// control sends a request to the instance whose request stands still.
func (a *accident) control(ctx context.Context, method, path string) error {
	_, err := stage.Send(context.WithoutCancel(ctx), accidentLimit, method, "http://"+a.stage.Addrs[0]+path, "")
	return err
}
