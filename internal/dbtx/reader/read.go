package reader

import (
	"context"
	"slices"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/rowversion"
)

// ReadNow reads a row as it is committed now. It does not wait for a transaction that
// is writing the row; plain is what a plain read has found.
func (q *Reader) ReadNow(ctx context.Context, r *protected.Row, versions bool, plain protected.Reading) (protected.Reading, error) {
	lock := "FOR SHARE NOWAIT"
	if q.Session.MariaDB {
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

// Read reads a row by the columns that name it: its primary key, its name as the
// database spells it and, if versions is set, its version.
func (q *Reader) Read(ctx context.Context, r *protected.Row, versions bool, lock string) (protected.Reading, error) {
	columns := append([]string(nil), r.Schema.PrimaryFieldDBNames...)
	fields := r.Schema.PrimaryFields
	version := models.FieldOf[rowversion.Version](r.Schema)
	if len(columns) == 0 {
		columns, fields = r.Columns(), r.Fields
	}
	if versions && version != nil {
		columns = append(columns, version.DBName)
	}
	for i, f := range r.Fields { // the index covers them
		if _, ok := sqlvalue.Text(r.Values[i]); ok && !slices.Contains(columns, f.DBName) {
			columns = append(columns, f.DBName)
		}
	}
	row, err := r.Load(q.DB(ctx).Select(columns), r.Schema.ModelType, lock)
	if err != nil || !row.IsValid() {
		return protected.Reading{}, err
	}
	got := protected.Reading{Found: true, Texts: make(map[string]string)}
	for _, f := range fields {
		got.Key = append(got.Key, models.Value(ctx, f, row))
	}
	for _, f := range r.Fields {
		if text, ok := sqlvalue.Text(models.Value(ctx, f, row)); ok {
			got.Texts[f.DBName] = text
		}
	}
	if versions && version != nil {
		got.Version = models.In[rowversion.Version](ctx, version, row)
	}
	return got, nil
}

// ReadsNewest reports whether the transaction can read a row as it is committed now,
// in addition to its snapshot.
func (q *Reader) ReadsNewest() bool { return q.Dialect.Share != "" }
