package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/guard"
)

// listenLocal listens on an address that only this host reaches: whoever sees the
// page may change what is on it.
func listenLocal(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the page: %w (-listen takes another address)", err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("serve the page: %v is not a loopback address", ln.Addr()), ln.Close())
	}
	return ln, nil
}

const docsURL = "https://github.com/belaygo/belay/blob/main/"

// serve serves the monitor's page on ln, which it closes, and keeps the shop a
// little busy, until ctx ends.
func (e *embedded) serve(ctx context.Context, scr *screen, ln net.Listener) (err error) {
	handler, err := web.NewHandler(web.Config{
		Store: e.monitor.store, Broker: e.monitor, Metrics: e.monitor.metrics, Writes: true, DocsURL: docsURL,
	})
	if err != nil {
		return err
	}
	shop, err := startShop(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeShop(shop)) }()

	fmt.Fprintln(scr.out)
	scr.text(bold, fmt.Sprintf("The monitor's page: http://%v/", ln.Addr()))
	scr.text(dim, fmt.Sprintf("The shop goes on, and loses a lock every %v. Ctrl-C ends it.", loseEvery*visitEvery))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &visits{embedded: e, shop: shop}
	defer scr.watch(v.String)()
	var parts sync.WaitGroup
	errs := make([]error, 2)
	parts.Go(func() { _ = handler.Run(ctx) })
	parts.Go(func() { errs[0] = web.Serve(ctx, ln, handler, nil, slog.New(slog.DiscardHandler)); cancel() })
	parts.Go(func() { errs[1] = v.run(ctx); cancel() })
	parts.Wait()
	return errors.Join(errs...)
}

const (
	visitEvery = 250 * time.Millisecond
	loseEvery  = 80 // visits
)

// visits are shoppers who come one after the other.
type visits struct {
	*embedded
	shop []*instance

	n                      int
	sold, repeats, catches atomic.Int64
}

func (v *visits) String() string {
	return fmt.Sprintf("%d sold, %d repeats, %d lock failures caught", v.sold.Load(), v.repeats.Load(), v.catches.Load())
}

func (v *visits) run(ctx context.Context) error {
	tick := time.NewTicker(visitEvery)
	defer tick.Stop()
	for {
		if err := v.visit(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// visit has somebody buy; every third one repeats the order before. Once in a
// while a lock is lost.
func (v *visits) visit(ctx context.Context) error {
	v.n++
	r := request{no: v.number(v.n - v.n%3/2), to: v.shop[v.n%len(v.shop)]}
	if v.n%loseEvery == 0 {
		double := request{no: r.no, to: v.shop[(v.n+1)%len(v.shop)]}
		clicked, doubled, err := v.loseLock(ctx, newSilentScreen(), r, double)
		if err != nil {
			return v.count(ctx, err)
		}
		return errors.Join(v.count(ctx, clicked), v.count(ctx, doubled))
	}
	return v.count(ctx, r.to.buy(ctx, r.no))
}

// number follows those of the crowd.
func (v *visits) number(n int) string { return fmt.Sprintf("2026-%04d", requests+n) }

// count returns err if it is none that a shopper may get.
func (v *visits) count(ctx context.Context, err error) error {
	switch {
	case err == nil:
		v.sold.Add(1)
	case errors.Is(err, guard.ErrDuplicate):
		v.repeats.Add(1)
	case errors.Is(err, guard.ErrIntercepted), errors.Is(err, guard.ErrLost):
		v.catches.Add(1)
	case errors.Is(err, errSoldOut):
		if err := v.shop[0].restock(ctx); err != nil {
			return v.count(ctx, err)
		}
	case errors.Is(err, guard.ErrBusy), errors.Is(err, guard.ErrUnavailable):
		// The next visit may have more luck: the machine has slept, say.
	default:
		return err
	}
	return nil
}

// restock puts new items on the shelf.
func (i *instance) restock(ctx context.Context) error {
	return i.guard.Apply(ctx, itemKey, guard.Update(&Stock{ID: itemID}, func(s *Stock) error {
		s.Left = items
		return nil
	}))
}

func newSilentScreen() *screen {
	return &screen{out: io.Discard, width: func() int { return plainWidth }}
}
