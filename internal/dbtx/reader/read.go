package reader

import (
	"context"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/rowversion"
)

// ReadNow reads a row as it is committed now. It does not wait for a transaction that
// is writing the row; plain is what a plain read has found.
func (q *Reader) ReadNow(ctx context.Context, r *protected.Row, versions bool, plain protected.Reading) (protected.Reading, error) {
	lock := "FOR SHARE NOWAIT"
	if q.Session.Family == dialect.MariaDB {
		lock = q.Dialect.Share + " NOWAIT"
	}
	now, err := q.Read(ctx, r, versions, lock)
	if dialect.IsSyntax(err) { // an old server
		now, err = q.Read(ctx, r, versions, q.Dialect.Share)
	}
	if dialect.IsChanged(err) { // since the snapshot: MariaDB locks no such row
		return protected.Reading{Changed: true}, nil
	}
	if dialect.IsLocked(err) {
		if plain.Found && !versions {
			return plain, nil // the row exists, and another transaction has locked it
		}
		return protected.Reading{Locked: true}, nil
	}
	return now, err
}

// DeferLook defers a look for a row, if statements are deferred, and reports whether it has. there gets whether the
// row is there. After an error the prelude has failed.
func (q *Reader) DeferLook(r *protected.Row, there func(bool)) (deferred bool, err error) {
	if !q.tx.Deferring() {
		return false, nil
	}
	ctx, cancel := q.Context()
	defer cancel()
	err = q.tx.DeferLook(func() (string, []any, error) {
		return q.access().loader.Text(ctx, protected.Query{Row: r, Columns: r.Columns})
	}, there)
	return true, err
}

// Read reads a row by the columns that name it: its primary key, its name as the
// database spells it and, if versions is set, its version.
func (q *Reader) Read(ctx context.Context, r *protected.Row, versions bool, lock string) (protected.Reading, error) {
	key := r.Model.Primary()
	if len(key) == 0 {
		key = r.Columns
	}
	columns := slices.Clone(key)
	version := r.Model.Version()
	if versions && version != "" {
		columns = append(columns, version)
	}
	for i, name := range r.Columns { // the index covers them
		if _, ok := sqlvalue.Text(r.Values[i]); ok && !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	row, err := q.Load(ctx, protected.Query{Row: r, Columns: columns, Lock: lock})
	if err != nil || row == nil {
		return protected.Reading{}, err
	}
	got := protected.Reading{Found: true, Texts: make(map[string]string)}
	for _, name := range key {
		got.Key = append(got.Key, row(name))
	}
	for _, name := range r.Columns {
		if text, ok := sqlvalue.Text(row(name)); ok {
			got.Texts[name] = text
		}
	}
	if versions {
		got.Version = statement.In[rowversion.Version](row, version)
	}
	return got, nil
}

// ReadsNewest reports whether the transaction can read a row as it is committed now,
// in addition to its snapshot.
func (q *Reader) ReadsNewest() bool { return q.Dialect.Share != "" }
