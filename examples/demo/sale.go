package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

// sale has the servers: Redis, the database, the broker with the monitor behind
// it.
type sale struct {
	dir    string
	redis  *miniredis.Miniredis
	pool   *sql.DB
	db     *gorm.DB
	alerts *alerts
	broker notify.Publisher
}

// open starts the servers, with their data in a folder that close removes.
func open(ctx context.Context) (_ *sale, err error) {
	s := &sale{redis: miniredis.NewMiniRedis()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "belay-demo-"); err != nil {
		return nil, err
	}
	if err = s.redis.Start(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if s.alerts, err = openAlerts(ctx, filepath.Join(s.dir, "monitor.db")); err != nil {
		return nil, err
	}
	s.broker = s.alerts
	if s.db, err = openDB(s.shopDB(), &s.pool); err != nil {
		return nil, err
	}
	return s, stockUp(ctx, s.db, items)
}

func (s *sale) shopDB() string { return filepath.Join(s.dir, "shop.db") }

// startShop starts the instances of the service.
func (s *sale) startShop() ([]*instance, error) {
	var shop []*instance
	for n := range instances {
		i, err := startInstance(fmt.Sprintf("shop-%c", 'a'+n), s.redis.Addr(), s.shopDB(), s.broker)
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

func (s *sale) close() error {
	var errs []error
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.alerts != nil {
		errs = append(errs, s.alerts.store.Close())
	}
	s.redis.Close()
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
