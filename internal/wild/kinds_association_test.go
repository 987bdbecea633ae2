package wild

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// associationKinds are rows that are saved with others.
var associationKinds = []tried{
	kind[Purchase]{name: "with associations", setup: purchases, row: purchase, key: purchaseNo},
	kind[Purchase]{name: "Save with associations", setup: purchases, row: purchase, key: purchaseNo, insert: create[Purchase], update: save[Purchase]},
	kind[Purchase]{name: "FullSaveAssociations", setup: purchases, row: purchase, key: purchaseNo, insert: create[Purchase],
		update: func(tx *gorm.DB, p *Purchase) error {
			return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(p).Error
		}, except: []exception{{in: "update", refused: dbguard.ErrVersion, says: "use Create or an update"}}},
	kind[Purchase]{name: "Append to has many, then Save", setup: purchases, row: purchase, key: purchaseNo, insert: create[Purchase],
		update: func(tx *gorm.DB, p *Purchase) error {
			if err := tx.Model(p).Association("Lines").Append(&PurchaseLine{Text: "more"}); err != nil {
				return err
			}
			p.Amount++
			return tx.Omit("Lines").Save(p).Error
		}},
	kind[Purchase]{name: "Save, then save a child", setup: purchases, row: purchase, key: purchaseNo, insert: create[Purchase],
		update: func(tx *gorm.DB, p *Purchase) error {
			if err := tx.Save(p).Error; err != nil {
				return err
			}
			p.Lines[0].Text += "+"
			return tx.Save(&p.Lines[0]).Error
		}},
}

func purchases(e *env) {
	e.t.Helper()
	e.migrate(&Customer{}, &Label{}, &Purchase{}, &PurchaseAddress{}, &PurchaseLine{})
}

func purchase(n int) *Purchase {
	return &Purchase{No: no(n), Customer: Customer{Name: "c"}, Address: PurchaseAddress{Text: "a"},
		Lines: []PurchaseLine{{Text: "l1"}, {Text: "l2"}}, Labels: []Label{{Name: "x"}}}
}

func purchaseNo(n int) any { return &Purchase{No: no(n)} }

type Purchase struct {
	Row
	No         string `gorm:"size:64;uniqueIndex"`
	CustomerID uint
	Customer   Customer
	Address    PurchaseAddress
	Lines      []PurchaseLine
	Labels     []Label `gorm:"many2many:purchase_labels"`
}

type Customer struct {
	ID      uint
	Name    string `gorm:"size:64"`
	Version dbguard.Version
}

type PurchaseAddress struct {
	ID         uint
	PurchaseID uint
	Text       string `gorm:"size:64"`
	Version    dbguard.Version
}

type PurchaseLine struct {
	ID         uint
	PurchaseID uint
	Text       string `gorm:"size:64"`
	Version    dbguard.Version
}

type Label struct {
	ID      uint
	Name    string `gorm:"size:64"`
	Version dbguard.Version
}
