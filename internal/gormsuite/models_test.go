package gormsuite_test

import (
	"errors"

	"gorm.io/gorm"
)

// models are all models.
var models = []any{&Firm{}, &Person{}, &Passport{}, &Invoice{}, &Item{}, &Label{}, &Note{}, &Setting{}}

// tableNames are their tables and the join tables, those that refer to others first.
var tableNames = []string{"person_labels", "person_friends", "notes", "items", "invoices", "passports", "labels", "people", "firms", "settings"}

type Firm struct {
	ID     uint
	Name   string `gorm:"size:64"`
	People []Person
	Notes  []Note `gorm:"polymorphic:Owner"`
}

type Address struct {
	City   string `gorm:"size:64"`
	Street string `gorm:"size:64"`
}

type Person struct {
	gorm.Model
	Name     string   `gorm:"size:64;uniqueIndex"`
	Age      int      `gorm:"default:18"`
	Home     Address  `gorm:"embedded;embeddedPrefix:home_"`
	Tags     []string `gorm:"serializer:json;size:255"`
	SeenAt   int64    `gorm:"autoUpdateTime:milli"`
	Pin      string   `gorm:"size:64;<-:create"`
	FirmID   *uint
	Firm     *Firm
	ChiefID  *uint
	Chief    *Person  `gorm:"constraint:OnDelete:SET NULL"`
	Team     []Person `gorm:"foreignKey:ChiefID"`
	Passport *Passport
	Invoices []Invoice
	Labels   []Label   `gorm:"many2many:person_labels"`
	Friends  []*Person `gorm:"many2many:person_friends"`
	Notes    []Note    `gorm:"polymorphic:Owner"`
}

type Passport struct {
	ID       uint
	PersonID uint
	No       string `gorm:"size:64;uniqueIndex"`
}

// Invoice has all hooks, and notes them.
type Invoice struct {
	ID       uint
	PersonID *uint
	No       string `gorm:"size:64;uniqueIndex"`
	Total    int
	Items    []Item
}

// Item has a composite primary key.
type Item struct {
	InvoiceID uint `gorm:"primaryKey;autoIncrement:false"`
	Place     int  `gorm:"primaryKey;autoIncrement:false"`
	Amount    int
}

type Label struct {
	ID   uint
	Name string `gorm:"size:64"`
}

type Note struct {
	ID        uint
	OwnerID   uint
	OwnerType string `gorm:"size:64"`
	Text      string `gorm:"size:64"`
}

// Setting has a primary key that nothing generates.
type Setting struct {
	Name  string `gorm:"size:64;primaryKey"`
	Value string `gorm:"size:64"`
}

var errHook = errors.New("refused by a hook")

func (i *Invoice) hook(tx *gorm.DB, name string) error {
	note(tx, name, i.No, i.Total)
	if i.No == "no "+name {
		return errHook
	}
	return nil
}

func (i *Invoice) BeforeSave(tx *gorm.DB) error { return i.hook(tx, "BeforeSave") }
func (i *Invoice) AfterSave(tx *gorm.DB) error  { return i.hook(tx, "AfterSave") }

func (i *Invoice) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.SetColumn("Total", i.Total+1)
	return i.hook(tx, "BeforeCreate")
}

// AfterCreate runs a statement of its own.
func (i *Invoice) AfterCreate(tx *gorm.DB) error {
	return errors.Join(
		tx.Create(&Note{OwnerType: "hook", Text: i.No}).Error,
		i.hook(tx, "AfterCreate"))
}

func (i *Invoice) BeforeUpdate(tx *gorm.DB) error {
	if tx.Statement.Changed("No") {
		note(tx, "the number changes")
	}
	return i.hook(tx, "BeforeUpdate")
}

func (i *Invoice) AfterUpdate(tx *gorm.DB) error  { return i.hook(tx, "AfterUpdate") }
func (i *Invoice) BeforeDelete(tx *gorm.DB) error { return i.hook(tx, "BeforeDelete") }
func (i *Invoice) AfterDelete(tx *gorm.DB) error  { return i.hook(tx, "AfterDelete") }
func (i *Invoice) AfterFind(tx *gorm.DB) error    { return i.hook(tx, "AfterFind") }

// ada is a person with some of everything.
func ada() *Person {
	return &Person{
		Name: "ada", Age: 36, Home: Address{City: "London", Street: "St James's Square"},
		Tags: []string{"x", "y"}, Pin: "1815", Firm: &Firm{Name: "engines"}, Chief: &Person{Name: "charles"},
		Team: []Person{{Name: "mary"}, {Name: "luigi"}}, Passport: &Passport{No: "p1"},
		Invoices: []Invoice{{No: "i1", Items: []Item{{Place: 1, Amount: 5}, {Place: 2, Amount: 7}}}, {No: "i2"}},
		Labels:   []Label{{Name: "first"}, {Name: "second"}}, Friends: []*Person{{Name: "michael"}},
		Notes: []Note{{Text: "note g"}},
	}
}

// people creates some that have nothing else.
func people(db *gorm.DB, names ...string) ([]Person, error) {
	list := make([]Person, len(names))
	for i, name := range names {
		list[i] = Person{Name: name, Age: 20 + i}
	}
	return list, db.Create(&list).Error
}

// made is people for a feature that does something with them.
func made(f func(db *gorm.DB, p []Person) error, names ...string) func(db *gorm.DB) error {
	return func(db *gorm.DB) error {
		p, err := people(db, names...)
		if err != nil {
			return err
		}
		return f(db, p)
	}
}

// withAda is a feature that begins with ada in the tables.
func withAda(f func(db *gorm.DB, a *Person) error) func(db *gorm.DB) error {
	return func(db *gorm.DB) error {
		a := ada()
		if err := db.Create(a).Error; err != nil {
			return err
		}
		return f(db, a)
	}
}

// noted notes how a statement ended and what it gave, and returns its error.
func noted(db *gorm.DB, result *gorm.DB, values ...any) error {
	note(db, append(values, result.RowsAffected)...)
	return result.Error
}
