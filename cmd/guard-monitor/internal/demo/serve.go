package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/guard"
)

// listenLocal listens on an address that only this host reaches: the page lets its
// visitors change what is on it.
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
	shop, err := e.startShop(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeShop(shop)) }()

	fmt.Fprintln(scr.out)
	scr.text(fmt.Sprintf("The monitor's page: http://%v/", ln.Addr()))
	scr.text(fmt.Sprintf("The shop goes on, and loses a lock every %v. Ctrl-C ends it.", loseEvery*visitEvery))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := &visits{embedded: e, shop: shop}
	var parts sync.WaitGroup
	errs := make([]error, 2)
	parts.Go(func() { _ = handler.Run(ctx) })
	parts.Go(func() { errs[0] = web.Serve(ctx, ln, handler, nil, quiet); cancel() })
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
	n    int
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
// while a lock is lost. It returns the first error that no shopper may get.
func (v *visits) visit(ctx context.Context) error {
	v.n++
	no := fmt.Sprintf("2026-%04d", requests+v.n-v.n%3/2) // behind those of the crowd
	r := request{no: no, to: v.shop[v.n%len(v.shop)]}
	if v.n%loseEvery != 0 {
		return v.judge(ctx, r.to.buy(ctx, no))
	}
	double := request{no: no, to: v.shop[(v.n+1)%len(v.shop)]}
	clicked, doubled, err := v.loseLock(ctx, &screen{out: io.Discard}, r, double)
	if err != nil {
		return v.judge(ctx, err)
	}
	return errors.Join(v.judge(ctx, clicked), v.judge(ctx, doubled))
}

// judge returns err unless it is one that a shopper may get. When the items are sold
// out, it puts new ones on the shelf.
func (v *visits) judge(ctx context.Context, err error) error {
	if errors.Is(err, errSoldOut) {
		err = v.shop[0].Guard.Apply(ctx, itemKey, guard.Update(&Stock{ID: itemID}, func(s *Stock) error {
			s.Left = items
			return nil
		}))
	}
	for _, usual := range []error{guard.ErrDuplicate, guard.ErrIntercepted, guard.ErrLost, guard.ErrBusy, guard.ErrUnavailable} {
		if errors.Is(err, usual) { // the next visit may have more luck: the machine has slept, say
			return nil
		}
	}
	return err
}
