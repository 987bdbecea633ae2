package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// scene is the servers that the story is played on.
type scene interface {
	// is says what the servers are, for people.
	is() string
	// names of those who tell what happens.
	database() string
	broker() string

	// newInstance starts an instance of the shop.
	newInstance(name string) (*instance, error)
	// loseLock sends click and, while the instance that it goes to works under the
	// lock, has the lock lost and sends double to another instance.
	loseLock(ctx context.Context, scr *screen, click, double request) (clicked, doubled, err error)

	db() *gorm.DB
	desk() *desk
}

// startShop starts the instances of the service.
func startShop(s scene) ([]*instance, error) {
	var shop []*instance
	for n := range instances {
		i, err := s.newInstance(fmt.Sprintf("shop-%c", 'a'+n))
		if err != nil {
			return nil, errors.Join(err, closeShop(shop))
		}
		shop = append(shop, i)
	}
	return shop, nil
}

// closeShop stops the instances. They hand over what they still have to report.
func closeShop(shop []*instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, i := range shop {
		errs = append(errs, i.close(ctx))
	}
	return errors.Join(errs...)
}

// until waits for done to become true; what is what is waited for.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		is, err := done()
		switch {
		case ctx.Err() != nil && !is:
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case is || err != nil:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
