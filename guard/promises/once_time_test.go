package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/once"
)

// A Made is an effect that nothing keeps from being there twice.
type Made struct {
	ID int64
	No string `gorm:"size:64"`
}

// TestOnceSideBySide: requests whose ids begin with one time are neighbours in their table. Each is asked for by
// two services at once whose locks exclude nobody, and takes effect once.
func TestOnceSideBySide(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		wantNil(t, e.db.AutoMigrate(&Made{}))
		services := []*guard.Guard{e.Guard.Guard, guardtest.New(t, e.db).Guard}
		const callers, each = 4, 5
		var asking sync.WaitGroup
		for c := range callers {
			for _, g := range services {
				asking.Go(func() {
					for n := range each {
						if err := makeOne(g, fmt.Sprintf("0199a1b2-c3d4-7abc-8def-%012x", n*callers+c)); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		asking.Wait()
		var all, apart int64
		wantNil(t, e.db.Model(&Made{}).Count(&all).Error)
		wantNil(t, e.db.Model(&Made{}).Distinct("no").Count(&apart).Error)
		if all != callers*each || apart != all {
			t.Errorf("%d effects of %d requests, want one of each of %d", all, apart, callers*each)
		}
	})
}

// makeOne asks for a request until it is not busy.
func makeOne(g *guard.Guard, id string) (err error) {
	r := once.Request{Operation: "make", Scope: once.Anyone, ID: id}
	for range 1000 {
		_, err = guard.Once(bg, g, r, func(_ context.Context, tx *gorm.DB) (int, error) { return 1, tx.Create(&Made{No: id}).Error })
		if !errors.Is(err, guard.ErrBusy) {
			return err
		}
	}
	return err
}
