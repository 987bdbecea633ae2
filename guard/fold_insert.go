package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx"
)

// errTriggers has a crew run apart: a trigger of a table that they insert into may write
// the row that they update, and that was loaded before.
var errTriggers = errors.New("guard: a table has triggers")

// maxValues bounds the values of one INSERT.
const maxValues = 8192

// target implements foldable. Hooks and associations send statements of their own, each at
// its time.
func (w insertion[T]) target(_ context.Context, in *folding) (target, bool) {
	if checkRow(w.row) != nil {
		return target{}, false
	}
	stmt := &gorm.Statement{DB: in.db}
	if stmt.Parse(w.row) != nil {
		return target{}, false
	}
	s := stmt.Schema
	if _, apart := in.apart.Load(s.ModelType); apart || s.BeforeSave || s.AfterSave || s.BeforeCreate || s.AfterCreate || len(s.Relationships.Relations) > 0 {
		return target{}, false
	}
	return target{model: s.ModelType, table: strings.ToLower(s.Table)}, true
}

func (w insertion[T]) inserts() any { return w.row }

// A foldedInsert is rows that several Inserts make.
type foldedInsert[T any] struct {
	schema *schema.Schema
	rows   []*T
}

// fold implements foldable.
func (w insertion[T]) fold(_ context.Context, t *dbtx.Tx, tx *gorm.DB, in *folding) (fold, error) {
	stmt := &gorm.Statement{DB: tx}
	if err := stmt.Parse(w.row); err != nil {
		return nil, fmt.Errorf("parse %T: %w", w.row, err)
	}
	if t.HasTriggers(stmt.Schema.Table) {
		in.apart.Store(stmt.Schema.ModelType, true)
		return nil, errTriggers
	}
	return &foldedInsert[T]{schema: stmt.Schema}, nil
}

func (f *foldedInsert[T]) try(_ context.Context, s step) (func(*dbtx.Tx), func(), error) {
	row := s.(insertion[T]).row
	before := *row
	undo := func() { *row = before }
	return func(t *dbtx.Tx) {
		t.OnRollback(undo)
		f.rows = append(f.rows, row)
	}, undo, nil
}

func (f *foldedInsert[T]) save(ctx context.Context, tx *gorm.DB) error {
	n := 1
	if f.together(ctx, tx) {
		n = max(1, maxValues/max(1, len(f.schema.DBNames)))
	}
	for rows := range slices.Chunk(f.rows, n) {
		made := tx.Create(rows)
		if err := refusesRepeats(dbtx.FromContext(ctx), made); err != nil {
			return err
		}
		if made.RowsAffected != int64(len(rows)) {
			return fmt.Errorf("guard: %d of %d rows were inserted", made.RowsAffected, len(rows))
		}
	}
	return nil
}

// together reports whether one INSERT makes of the rows, in the database and in memory,
// what one for each would. Where nothing returns the numbers of the rows, gorm counts on
// from the first one, and a column that the database fills must be filled in all.
func (f *foldedInsert[T]) together(ctx context.Context, tx *gorm.DB) bool {
	if tx.CreateBatchSize > 0 {
		return false
	}
	returns := slices.Contains(tx.Callback().Create().Clauses, "RETURNING")
	for _, field := range f.schema.FieldsWithDefaultDBValue {
		zeros := 0
		for _, row := range f.rows {
			if _, zero := field.ValueOf(ctx, reflect.ValueOf(row)); zero {
				zeros++
			}
		}
		if zeros != 0 && zeros != len(f.rows) || zeros != 0 && field.AutoIncrement && !returns {
			return false
		}
	}
	return true
}
