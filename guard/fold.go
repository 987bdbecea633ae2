package guard

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/gormfront/models"
)

// target implements foldable. A row that comes with a version is expected to have it, and
// rows that share memory would change each other.
func (w update[T]) target(ctx context.Context, in *folding) (target, bool) {
	if checkRow(w.row) != nil || w.change == nil {
		return target{}, false
	}
	m, err := parse(in.db, w.row)
	if err != nil || m.version(ctx, w.row) != 0 || !folds(m.Schema) || len(m.PrimaryFields) == 0 {
		return target{}, false
	}
	var key any
	for _, f := range m.PrimaryFields {
		value, zero := f.ValueOf(ctx, reflect.ValueOf(w.row))
		if zero || !reflect.ValueOf(value).Comparable() {
			return target{}, false
		}
		key = [2]any{key, value}
	}
	return target{m.ModelType, strings.ToLower(m.Table), key}, true
}

// known has for each model whether changes of its rows can be folded.
var known sync.Map // reflect.Type → bool

// folds reports whether several changes of a row of the model can be made before it is
// saved: no hook expects to see each, copies of the row share no memory, and each change
// would find the row as the one before leaves it.
func folds(s *schema.Schema) bool {
	if yes, ok := known.Load(s.ModelType); ok {
		return yes.(bool)
	}
	hooks := s.BeforeSave || s.AfterSave || s.BeforeUpdate || s.AfterUpdate || s.AfterFind
	yes := !hooks && copies(s.ModelType) && !slices.ContainsFunc(s.Fields, generated) && !slices.ContainsFunc(s.Fields, models.Unread)
	known.Store(s.ModelType, yes)
	return yes
}

// generated reports whether the database may compute a field from the others: the changes
// of a crew would see the value from before the first one.
func generated(f *schema.Field) bool {
	return f.DBName != "" && f.Readable && !f.Creatable && !f.Updatable
}

// copies reports whether an assignment copies all of a value of the type.
func copies(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() {
		return true
	}
	switch t.Kind() {
	case reflect.Array:
		return copies(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !copies(f.Type) {
				return false
			}
		}
		return true
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return false
	}
	return true
}

// errHides has a change made alone: later ones would not have found the row.
var errHides = errors.New("guard: the change hides the row from queries")

// hides reports whether queries leave out rows by the value of a field, as they do with
// rows that were deleted softly.
func hides(f *schema.Field) bool {
	_, ok := reflect.TypeAssert[schema.QueryClausesInterface](reflect.New(f.IndirectFieldType))
	return ok
}

// A foldedUpdate is a row that several Updates change.
type foldedUpdate[T any] struct {
	versioned[T]
	asked T // with the primary key
	now   T // with the changes so far
	from  dbguard.Version
	rows  []*T // of those who made them
	clock func() time.Time
}

func (w update[T]) inserts() any { return nil }

// fold implements foldable.
func (w update[T]) fold(ctx context.Context, t *dbtx.Tx, tx *gorm.DB, _ *folding) (fold, error) {
	m, err := parse(tx, w.row)
	if err != nil {
		return nil, err
	}
	if err := t.ProtectPrimary(w.row); err != nil {
		return nil, err
	}
	f := &foldedUpdate[T]{versioned: m, asked: *w.row, now: *w.row, clock: tx.NowFunc}
	if err := m.load(ctx, tx, &f.now); err != nil {
		return nil, err
	}
	f.from = m.version(ctx, &f.now)
	return f, nil
}

func (f *foldedUpdate[T]) try(ctx context.Context, s step) (func(*dbtx.Tx), func(), error) {
	w := s.(update[T])
	before := *w.row
	undo := func() { *w.row = before }
	made := false
	defer func() {
		if !made {
			undo()
		}
	}()
	*w.row = f.now
	if err := w.change(w.row); err != nil {
		return nil, nil, err
	}
	if err := f.restore(ctx, w.row, &f.asked, f.from+dbguard.Version(len(f.rows))+1); err != nil {
		return nil, nil, err
	}
	next, err := f.after(ctx, w.row)
	if err != nil {
		return nil, nil, err
	}
	made = true
	return func(t *dbtx.Tx) {
		t.OnRollback(undo)
		f.now, f.rows = next, append(f.rows, w.row)
	}, undo, nil
}

// after returns the row that the next change gets, as if a changed one had been saved and
// loaded: what is no column that is saved stays as it was loaded, and the row says that it
// was updated now.
func (f *foldedUpdate[T]) after(ctx context.Context, row *T) (T, error) {
	saved := f.now
	next, changed := reflect.ValueOf(&saved), reflect.ValueOf(row)
	for _, field := range f.Fields {
		switch {
		case field.DBName == "" || !field.Updatable:
		case field.AutoUpdateTime > 0:
			if err := field.Set(ctx, next, f.clock()); err != nil {
				return saved, err
			}
		default:
			was, is := field.ReflectValueOf(ctx, next), field.ReflectValueOf(ctx, changed)
			if len(f.QueryClauses) > 0 && hides(field) && !reflect.DeepEqual(was.Interface(), is.Interface()) {
				return saved, errHides
			}
			was.Set(is)
		}
	}
	return saved, nil
}

func (f *foldedUpdate[T]) save(ctx context.Context, tx *gorm.DB) error {
	if len(f.rows) == 0 {
		return nil
	}
	saved := f.now
	if err := f.restore(ctx, &saved, &f.asked, f.from); err != nil {
		return err
	}
	tx = models.WithSteps(tx, int64(len(f.rows)))
	if err := f.whole(tx).Updates(&saved).Error; err != nil {
		return err
	}
	for _, field := range f.Fields {
		if field.AutoUpdateTime == 0 && field.FieldType != reflect.TypeFor[dbguard.Stamp]() {
			continue
		}
		value, _ := field.ValueOf(ctx, reflect.ValueOf(&saved))
		for _, row := range f.rows {
			if err := field.Set(ctx, reflect.ValueOf(row), value); err != nil {
				return err
			}
		}
	}
	return nil
}
