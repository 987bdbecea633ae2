package promises_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// Pan is a number that no log shows: each of them prints alike.
type Pan string

func (Pan) String() string { return "****" }

type Card struct {
	ID      uint
	No      Pan `gorm:"size:64;uniqueIndex"`
	Owner   int
	Version dbguard.Version
}

// TestMaskedKeysOfSeveralRows: the rows that a masked key protects are not taken for one
// another when an operation lists them.
func TestMaskedKeysOfSeveralRows(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Card{}))
		e.create(&Card{No: "111"}, &Card{No: "222"}, &Card{No: "333"})
		for _, no := range []Pan{"111", "222", "333"} {
			wantNil(e.t, e.Do(bg, "card:"+string(no), func(_ context.Context, tx *gorm.DB) error {
				var cards []Card
				return tx.Order("id").Find(&cards).Error
			}, guard.Protects(&Card{No: no})))
		}
		e.wantNoEvent()
	})
}

// TestMaskedKeyOfAnotherRow: a row that is there, and that the key does not protect, is no
// repeat of the protected one.
func TestMaskedKeyOfAnotherRow(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Card{}))
		e.create(&Card{No: "222"})
		err := e.Do(bg, "card:111", func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Card{No: "222"}).Error
		}, guard.Protects(&Card{No: "111"}))
		if got := string(guard.ResultOf(err)); got != "conflict" {
			e.t.Errorf("%s, want conflict: %v", got, err)
		}
	})
}

// TestMaskedKeysOfALostCommit: the row of one masked key is not looked for by that of
// another.
func TestMaskedKeysOfALostCommit(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := testdb.OpenMySQL(t, dsn)
	wantNil(t, direct.AutoMigrate(&Card{}))
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	g := guardtest.New(t, testdb.OpenMySQL(t, k.Through(t, dsn)))
	both := guard.All(guard.Insert(&Card{No: "111"}), guard.Insert(&Card{No: "222"}))
	wantNil(t, loseCommit(g, k, "cards", both.Run, true))
	var n int64
	wantNil(t, direct.Model(&Card{}).Count(&n).Error)
	if n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}
