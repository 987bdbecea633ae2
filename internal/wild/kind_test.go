package wild

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
)

// A kind is a model as services have it, its table, and the habit of writing it. Its
// cases end as cases says, but for exceptions.
type kind[T any] struct {
	name   string
	on     string                          // the databases that have it; all by default
	config func(*env) gorm.Option          // of the database that the models are in
	setup  func(*env)                      // before the table is made
	after  func(*env)                      // after that
	row    func(n int) *T                  // the n-th row, with its key
	again  func(n int) *T                  // the same as a repeat has it
	key    func(n int) any                 // what Protects is given: row by default
	scope  func(tx *gorm.DB) *gorm.DB      // of every statement
	insert func(tx *gorm.DB, row *T) error // guard.Insert by default
	update func(tx *gorm.DB, row *T) error // of a loaded row: guard.Update by default
	except []exception
}

// An exception says how some cases of a kind end: they are refused, or come to what is
// a known blind spot.
type exception struct {
	on, in  string // databases and cases; all by default
	refused error  // by the first use
	says    string // part of its text, which names the way out
	blind   string // the outcome
	events  int
	why     string
}

// An outcome is what a case comes to, as guard.ResultOf has it.
type outcome struct {
	name, outcome string
	events        int
}

// cases are what a kind is put through, in this order, and what they come to. Those of
// updates are only for models with a version.
var cases = []outcome{
	{"first", "done", 0},
	{"again", "duplicate", 0},
	{"elsewhere", "duplicate", 0}, // again, at another instance
	{"overlap", "intercepted", 1},
	{"business", "conflict", 0}, // under another key, which protects another row
	{"update", "done", 0},
	{"stale", "stale", 0},
	{"overtaken", "intercepted", 1},
	{"unmet", "conflict", 0}, // another condition of the update
}

// run puts the kind through a case.
func (k kind[T]) run(e *env, name string) error {
	const there, other, raced, updated = 1, 2, 3, 4 // rows
	switch name {
	case "first":
		return k.do(e.Guard.Guard, there, k.inserting(k.row, there), k.new(there))
	case "again":
		return k.do(e.Guard.Guard, there, k.inserting(k.repeat(), there), k.new(there))
	case "elsewhere":
		return k.do(e.peer, there, k.inserting(k.repeat(), there), k.new(there))
	case "overlap":
		nothing := func(context.Context, *gorm.DB) error { return nil }
		return e.overlap(lockOf(raced), nothing, k.inserting(k.row, raced), k.inserting(k.repeat(), raced), k.new(raced))
	case "business":
		return k.do(e.Guard.Guard, other, k.inserting(k.row, there), k.protects(other))
	}
	n := updated + slices.IndexFunc(cases, func(c outcome) bool { return c.name == name })
	if err := k.do(e.peer, n, k.inserting(k.row, n), k.new(n)); err != nil {
		return fmt.Errorf("insert the row: %w", err)
	}
	return k.runUpdate(e, name, n)
}

// runUpdate puts the n-th row, which is there, through a case.
func (k kind[T]) runUpdate(e *env, name string, n int) error {
	var row T
	load := func(_ context.Context, tx *gorm.DB) error { return k.load(tx, n, &row) }
	switch name {
	case "update":
		return k.do(e.Guard.Guard, n, k.updating(n), k.old(n))
	case "stale":
		if err := load(bg, e.db); err != nil {
			return err
		}
		if err := k.do(e.peer, n, k.updating(n), k.old(n)); err != nil {
			return fmt.Errorf("the update before: %w", err)
		}
		return k.do(e.Guard.Guard, n, k.saving(&row), k.old(n))
	case "overtaken":
		return e.overlap(lockOf(n), load, k.updating(n), k.saving(&row), k.old(n))
	default: // unmet
		return k.do(e.Guard.Guard, n, func(ctx context.Context, tx *gorm.DB) error {
			if err := load(ctx, tx); err != nil {
				return err
			}
			if err := dbtx.FromContext(ctx).ProtectPrimary(&row); err != nil {
				return err
			}
			return k.in(tx).Model(&row).Where("1 = 0").Update("Amount", 7).Error
		}, k.old(n))
	}
}

func lockOf(n int) string { return fmt.Sprintf("row:%d", n) }

func (k kind[T]) do(g *guard.Guard, n int, op guard.Op, opts ...guard.Option) error {
	return g.Do(bg, lockOf(n), op, opts...)
}

// protects names the n-th row.
func (k kind[T]) protects(n int) guard.Option {
	return guard.Protects(k.named(n))
}

// new names the n-th row where it is inserted: guard.Insert knows it by itself.
func (k kind[T]) new(n int) guard.Option {
	if k.insert == nil && k.key == nil {
		return guard.Protects()
	}
	return k.protects(n)
}

// old names the n-th row where it is updated: guard.Update knows it by itself.
func (k kind[T]) old(n int) guard.Option {
	if k.update == nil && k.key == nil {
		return guard.Protects()
	}
	return k.protects(n)
}

func (k kind[T]) named(n int) any {
	if k.key != nil {
		return k.key(n)
	}
	return k.row(n)
}

func (k kind[T]) repeat() func(n int) *T {
	if k.again != nil {
		return k.again
	}
	return k.row
}

// in returns tx as the kind uses it.
func (k kind[T]) in(tx *gorm.DB) *gorm.DB {
	if k.scope == nil {
		return tx
	}
	return k.scope(tx).Session(&gorm.Session{})
}

func (k kind[T]) inserting(row func(n int) *T, n int) guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		if k.insert != nil {
			return k.insert(k.in(tx), row(n))
		}
		return guard.Insert(row(n)).Run(ctx, k.in(tx))
	}
}

func (k kind[T]) updating(n int) guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		var row T
		if err := k.load(tx, n, &row); err != nil {
			return err
		}
		return k.saving(&row)(ctx, tx)
	}
}

func (k kind[T]) saving(row *T) guard.Op {
	return func(ctx context.Context, tx *gorm.DB) error {
		if k.update != nil {
			return k.update(k.in(tx), row)
		}
		return guard.Update(row, func(*T) error { return nil }).Run(ctx, k.in(tx))
	}
}

// load loads a row with what belongs to it.
func (k kind[T]) load(tx *gorm.DB, n int, row *T) error {
	return k.in(tx).Preload(clause.Associations).Where(k.named(n)).Take(row).Error
}

// versioned reports whether the model has updates that are judged.
func (k kind[T]) versioned(e *env) bool {
	stmt := &gorm.Statement{DB: e.db}
	e.must(stmt.Parse(new(T)))
	return slices.ContainsFunc(stmt.Schema.Fields, func(f *schema.Field) bool {
		return f.IndirectFieldType == reflect.TypeFor[dbguard.Version]()
	})
}
