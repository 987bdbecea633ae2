package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/cmd/internal/dsn"
	"github.com/belaygo/belay/dbguard"
)

// requestTimeout is how long the database has for an answer.
const requestTimeout = 10 * time.Second

// errFailed is matched by the errors of the database.
var errFailed = errors.New("the database")

// open returns the database of a service.
func (c command) open(ctx context.Context) (db *gorm.DB, closePool func(), err error) {
	pool, _, err := c.source().Open()
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, errUsage)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	db, err = dbguard.Open(ctx, pool)
	if err != nil {
		_ = pool.Close()
		return nil, nil, c.failed(err)
	}
	return db, func() { _ = pool.Close() }, nil
}

func (c command) source() dsn.Source {
	return dsn.Source{Variable: "BELAY_MESSAGES_DSN", Name: c.dsn, Dialect: c.dialect}
}

// failed returns an error of the database without the password.
func (c command) failed(err error) error {
	return fmt.Errorf("%w: %w", errFailed, c.source().Mask(err))
}
