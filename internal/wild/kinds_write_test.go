package wild

import (
	"errors"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/dbguard"
)

// unread is how an UPDATE in raw SQL ends. Its author sees to old versions, or passes what it
// returns to guard.Changed.
var unread = []exception{
	{on: "mariadb11", in: "overtaken"}, // it refuses to write what has changed
	{in: "stale", blind: "failed", why: "what raw SQL would write is not known"},
	{in: "overtaken", blind: "failed", events: 1, why: "so it is when the lock is lost, which its release reports"},
}

// writeKinds are habits of writing a row.
var writeKinds = []tried{
	kind[Item]{name: "slice", row: item, insert: func(tx *gorm.DB, i *Item) error { return tx.Create(&[]Item{*i, *beside()}).Error }},
	kind[Item]{name: "slice of pointers", row: item, insert: func(tx *gorm.DB, i *Item) error { return tx.Create([]*Item{beside(), i}).Error }},
	kind[Item]{name: "CreateInBatches", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.CreateInBatches([]*Item{beside(), i}, 1).Error
	}},
	kind[Item]{name: "CreateBatchSize", row: item, config: func(*env) gorm.Option { return &gorm.Config{CreateBatchSize: 1} },
		insert: func(tx *gorm.DB, i *Item) error { return tx.Create([]*Item{i, beside()}).Error }},
	kind[Item]{name: "map", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Model(&Item{}).Create(map[string]any{"No": i.No, "amount": 1}).Error
	}, update: func(tx *gorm.DB, i *Item) error { return tx.Model(i).Updates(map[string]any{"amount": 2}).Error }},
	kind[Item]{name: "maps", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Model(&Item{}).Create(&[]map[string]any{{"no": i.No, "Amount": 1}, {"no": beside().No, "Amount": 1}}).Error
	}, update: func(tx *gorm.DB, i *Item) error {
		return tx.Model(i).UpdateColumn("amount", gorm.Expr("amount + 1")).Error
	}},
	kind[Item]{name: "Save", row: item, insert: save[Item], update: save[Item]},
	kind[Item]{name: "Updates of a struct", row: item, insert: create[Item], update: func(tx *gorm.DB, i *Item) error {
		i.Amount++
		return tx.Updates(i).Error
	}},
	kind[Item]{name: "Updates of a slice", row: item, update: func(tx *gorm.DB, i *Item) error {
		var first Item
		if err := tx.Order("id").Take(&first).Error; err != nil {
			return err
		}
		return tx.Model([]*Item{&first, i}).Update("amount", 2).Error
	}},
	kind[Item]{name: "Select, Omit", row: item, insert: func(tx *gorm.DB, i *Item) error { return tx.Select("No", "Version").Create(i).Error },
		update: func(tx *gorm.DB, i *Item) error { return tx.Omit("No").Save(i).Error }},
	kind[Item]{name: "SkipHooks", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Session(&gorm.Session{SkipHooks: true}).Create(i).Error
	}, update: func(tx *gorm.DB, i *Item) error { return tx.Session(&gorm.Session{SkipHooks: true}).Save(i).Error }},
	kind[Item]{name: "nested transaction", row: item,
		insert: func(tx *gorm.DB, i *Item) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Create(i).Error })
		},
		update: func(tx *gorm.DB, i *Item) error {
			return tx.Transaction(func(tx *gorm.DB) error { return tx.Save(i).Error })
		}},
	kind[Item]{name: "FOR UPDATE", row: item, insert: create[Item], update: func(tx *gorm.DB, i *Item) error {
		var now Item
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Take(&now, i.ID).Error; err != nil {
			return err
		}
		return tx.Save(i).Error
	}},
	kind[Hooked]{name: "hook that alters the key", row: func(n int) *Hooked { return &Hooked{No: strings.ToUpper(no(n))} }},
	kind[Shipment]{name: "soft delete", row: func(n int) *Shipment { return &Shipment{No: no(n)} },
		update: func(tx *gorm.DB, s *Shipment) error { return tx.Delete(s).Error }},
	kind[Trash]{name: "number of a row that was deleted softly", row: func(n int) *Trash { return &Trash{No: no(n)} }, insert: func(tx *gorm.DB, t *Trash) error {
		if err := tx.Create(t).Error; err != nil {
			return err
		}
		return tx.Delete(t).Error
	}},
	kind[Item]{name: "delete", row: item, update: func(tx *gorm.DB, i *Item) error { return tx.Delete(i).Error },
		except: []exception{
			{in: "stale", blind: "conflict", why: "nothing tells when a row that is gone was deleted"},
			{on: "sqlite", in: "overtaken", blind: "conflict", events: 1, why: "the same; the release reports the lost lock"},
		}},
	kind[Item]{name: "DoNothing", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(i).Error
	}, except: []exception{
		{on: "mariadb11", in: "overlap"}, // as above
		{in: "again elsewhere business", blind: "done", why: "it asks for nothing else"},
		{in: "overlap", blind: "done", events: 1, why: "the release reports the lost lock"},
	}},
	kind[Tally]{name: "DoUpdates", row: func(n int) *Tally { return &Tally{No: no(n)} }, insert: func(tx *gorm.DB, i *Tally) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "no"}}, DoUpdates: clause.Assignments(map[string]any{"amount": 2})}).Create(i).Error
	}, except: []exception{
		{on: "mariadb11", in: "overlap"}, // as above
		{in: "again elsewhere business", blind: "done", why: "it asks for nothing else"},
		{in: "overlap", blind: "done", events: 1, why: "the release reports the lost lock"},
	}},
	kind[Item]{name: "UpdateAll", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(i).Error
	}, except: []exception{{refused: dbguard.ErrVersion, says: "use Create or an update"}}},
	kind[Item]{name: "raw SQL", row: item, insert: func(tx *gorm.DB, i *Item) error {
		return tx.Exec("INSERT INTO items (no, amount, version) VALUES (?, 1, 1)", i.No).Error
	}, update: func(tx *gorm.DB, i *Item) error {
		result := tx.Exec("UPDATE items SET amount = 2, version = version + 1 WHERE id = ? AND version = ?", i.ID, i.Version)
		if result.Error == nil && result.RowsAffected == 0 {
			return errors.New("no such version")
		}
		return result.Error
	}, except: unread},
}

func save[T any](tx *gorm.DB, row *T) error { return tx.Save(row).Error }

// beside returns a new row to come with another one.
func beside() *Item { return &Item{No: uuid.NewString()} }

type Hooked struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func (h *Hooked) BeforeCreate(*gorm.DB) error {
	h.No = strings.ToLower(h.No)
	return nil
}

type Trash struct {
	ID        uint
	No        string `gorm:"size:64;uniqueIndex"`
	DeletedAt gorm.DeletedAt
}

type Tally struct {
	ID     uint
	No     string `gorm:"size:64;uniqueIndex"`
	Amount int
}
