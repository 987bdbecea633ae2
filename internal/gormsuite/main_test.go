package gormsuite_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestMain(m *testing.M) {
	teststack.Quiet()
	// gorm's cache of prepared statements has a goroutine that nothing stops.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var wantNil = testdb.WantNil

// feature is one use of gorm, on tables that are empty. In a transaction it is
// all that the transaction does.
type feature struct {
	name string
	fail bool // run returns an error, with dbguard or without it
	run  func(db *gorm.DB) error
}

// allFeatures are the features of all areas, by area.
var allFeatures = map[string][]feature{
	"create":       createFeatures,
	"query":        queryFeatures,
	"update":       updateFeatures,
	"delete":       deleteFeatures,
	"associations": associationFeatures,
	"hooks":        hookFeatures,
	"scopes":       scopeFeatures,
	"nested":       nestedFeatures,
}

// TestInstalled: dbguard changes nothing outside of a guarded transaction.
func TestInstalled(t *testing.T) {
	t.Parallel()
	compare(t, gorm.Config{}, plain, installed)
}

// TestGuarded: in a guarded transaction, gorm does what it does in one of its own.
func TestGuarded(t *testing.T) {
	t.Parallel()
	compare(t, gorm.Config{}, begun, guarded)
}

// TestGuardedWithSettings is TestGuarded with other settings of gorm.
func TestGuardedWithSettings(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]gorm.Config{
		"prepared":   {PrepareStmt: true, QueryFields: true},
		"bare":       {SkipDefaultTransaction: true, FullSaveAssociations: true},
		"translated": {TranslateError: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, config, begun, guarded)
		})
	}
}

// compare runs each feature in both modes on each database. The feature itself is
// wrong if it fails without dbguard.
func compare(t *testing.T, config gorm.Config, without, with mode) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		features, wrong, differ := 0, 0, 0
		want := recordAll(t, open, config, without)
		got := recordAll(t, open, config, with)
		for _, area := range areas() {
			for _, f := range allFeatures[area] {
				name := area + "/" + f.name
				features++
				switch {
				case f.fail != want[name].failed:
					wrong++
					t.Errorf("%s, without dbguard: failed is %v, want %v: %s", name, want[name].failed, f.fail, want[name].end)
				case want[name].statements == 0:
					wrong++
					t.Errorf("%s has sent no statement", name)
				case got[name].String() != want[name].String():
					differ++
					t.Errorf("%s differs:\n%s", name, firstDifference(want[name].lines, got[name].lines))
				}
			}
		}
		t.Logf("%s: %d features of gorm, %d fail without dbguard, %d differ with it", t.Name(), features, wrong, differ)
	})
}

// errUndo makes a transaction roll back.
var errUndo = errors.New("undo")
