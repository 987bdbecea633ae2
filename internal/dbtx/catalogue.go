package dbtx

import (
	"sync"

	"gorm.io/gorm"
)

// remembered returns what is known of a table, which it reads once. It reads through the
// transaction; that creates no read view.
func remembered[T any](t *Tx, known *sync.Map, table string, read func(*gorm.DB, string) (T, error)) (T, error) {
	if found, ok := known.Load(table); ok {
		return found.(T), nil
	}
	ctx, cancel := t.judging()
	defer cancel()
	found, err := read(t.quiet(ctx, t.db), table)
	if err == nil {
		known.Store(table, found)
	}
	return found, err
}
