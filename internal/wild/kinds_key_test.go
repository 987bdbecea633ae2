package wild

import (
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
)

// no returns the n-th number, as text.
func no(n int) string { return "no" + strconv.Itoa(n) }

type Item struct {
	Row
	No string `gorm:"size:64;uniqueIndex"`
}

func item(n int) *Item { return &Item{No: no(n)} }

// keyKinds are types of keys.
var keyKinds = []tried{
	kind[Item]{name: "number", row: item},
	kind[Shipment]{name: "gorm.Model", row: func(n int) *Shipment { return &Shipment{No: no(n)} }},
	kind[Coded]{name: "text as primary key", row: func(n int) *Coded { return &Coded{Code: no(n)} }},
	kind[TextID]{name: "uuid as text", row: func(n int) *TextID { return &TextID{ID: uuidOf(n).String()} }},
	kind[BinaryID]{name: "uuid as binary(16)", row: func(n int) *BinaryID { return &BinaryID{ID: id16(uuidOf(n))} }},
	kind[UUID]{name: "uuid.UUID", row: func(n int) *UUID { return &UUID{ID: uuidOf(n)} }},
	kind[Digest]{name: "bytes", row: func(n int) *Digest { u := uuidOf(n); return &Digest{Sum: u[:]} }},
	kind[Fee]{name: "decimal as text", row: func(n int) *Fee { return &Fee{Value: fmt.Sprintf("%d.50", n)} }, update: save[Fee]},
	kind[FloatFee]{name: "decimal as float64", row: func(n int) *FloatFee { return &FloatFee{Value: float64(n) + 0.1} }, update: save[FloatFee]},
	kind[Price]{name: "decimal with more digits than its column", on: "mysql postgres", row: func(n int) *Price { return &Price{Amount: fmt.Sprintf("%d.505", n)} }},
	kind[Place]{name: "float64 in float4", row: func(n int) *Place { return &Place{Lat: narrow(n) + 0.1} }},
	kind[State]{name: "enum", on: "mysql", row: func(n int) *State { return &State{State: "paid", No: n} }},
	kind[State]{name: "enum in another case", on: "mysql", row: func(n int) *State { return &State{State: "PAID", No: n} }},
	kind[Document]{name: "jsonb", on: "postgres", row: func(n int) *Document { return &Document{Doc: fmt.Sprintf(`{"no":%d, "a":1}`, n)} }},
	kind[Path]{name: "serializer", row: func(n int) *Path { return &Path{Parts: []string{"a", no(n)}} }},
	kind[Big]{name: "unsigned maximum", on: "mysql", row: func(n int) *Big { return &Big{No: math.MaxUint64 - uint64(n)} }},
	kind[Priced]{name: "Valuer", row: func(n int) *Priced { return &Priced{Coin: Coin{"EUR", n}} }},
	kind[Subscriber]{name: "Valuer that normalises", row: func(n int) *Subscriber { return &Subscriber{Phone: Phone("0 1-" + strconv.Itoa(n))} }, update: save[Subscriber]},
	kind[Masked]{name: "Stringer that masks", row: func(n int) *Masked { return &Masked{No: pan(no(n))} }},
	kind[Masked]{name: "Stringer that masks, in gorm's own statements", row: func(n int) *Masked { return &Masked{No: pan(no(n))} }, insert: create[Masked], update: save[Masked]},
	kind[MaskedID]{name: "Stringer that masks, as primary key", row: func(n int) *MaskedID { return &MaskedID{No: pan(no(n))} }},
	kind[Optional]{name: "pointers", row: func(n int) *Optional { return &Optional{No: new(no(n))} }},
	kind[Referring]{name: "embedded with a prefix", row: func(n int) *Referring { return &Referring{Ref: Ref{"shop", no(n)}} }},
	kind[Micros]{name: "time in microseconds", row: func(n int) *Micros { return &Micros{At: at(n)} }},
	kind[Millis]{name: "time in milliseconds", row: func(n int) *Millis { return &Millis{At: at(n)} }},
	kind[Nullable]{name: "sql.NullTime", row: func(n int) *Nullable { return &Nullable{At: sql.NullTime{Time: at(n), Valid: true}} }},
	kind[Seconds]{name: "time in seconds", row: func(n int) *Seconds { return &Seconds{At: at(n)} }},
	kind[Day]{name: "date", row: func(n int) *Day { return &Day{At: at(24 * n)} }},
	kind[TextTime]{name: "text in timestamp(0)", on: "mysql postgres", row: func(n int) *TextTime {
		return &TextTime{At: at(n).Format("2006-01-02 15:04:05.6")}
	}},
}

type Shipment struct {
	gorm.Model
	No string `gorm:"size:64;uniqueIndex"`

	Counted
}

type Coded struct {
	Code string `gorm:"size:64;primaryKey"`

	Counted
}

type TextID struct {
	ID string `gorm:"type:char(36);primaryKey"`

	Counted
}

type BinaryID struct {
	ID id16 `gorm:"primaryKey"`

	Counted
}

type UUID struct {
	ID uuid.UUID `gorm:"type:char(36);primaryKey"`

	Counted
}

func uuidOf(n int) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[8:], uint64(n)+0xff00)
	return u
}

type id16 [16]byte

func (i id16) Value() (driver.Value, error) { return i[:], nil }

func (i *id16) Scan(v any) error {
	copy(i[:], v.([]byte))
	return nil
}

func (id16) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	return map[string]string{"mysql": "binary(16)", "postgres": "bytea", "sqlite": "blob"}[db.Name()]
}

type Digest struct {
	Row
	Sum []byte `gorm:"size:16;uniqueIndex"`
}

type Fee struct {
	Row
	Value string `gorm:"type:numeric(10,2);uniqueIndex"`
}

type FloatFee struct {
	Row
	Value float64 `gorm:"type:numeric(10,2);uniqueIndex"`
}

type Place struct {
	ID  uint
	Lat narrow `gorm:"uniqueIndex"`
}

type narrow float64

func (narrow) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	return map[string]string{"mysql": "float", "postgres": "real", "sqlite": "real"}[db.Name()]
}

type State struct {
	Row
	State string `gorm:"type:enum('new','paid');uniqueIndex:sn"`
	No    int    `gorm:"uniqueIndex:sn"`
}

type Document struct {
	Row
	Doc string `gorm:"type:jsonb;uniqueIndex"`
}

type Path struct {
	Row
	Parts []string `gorm:"serializer:json;size:64;uniqueIndex"`
}

type Big struct {
	Row
	No uint64 `gorm:"type:bigint unsigned;uniqueIndex"`
}

type Priced struct {
	Row
	Coin Coin `gorm:"size:64;uniqueIndex"`
}

type Coin struct {
	Currency string
	Cents    int
}

func (Coin) GormDataType() string           { return "string" }
func (c Coin) Value() (driver.Value, error) { return fmt.Sprint(c.Currency, " ", c.Cents), nil }

func (c *Coin) Scan(v any) error {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	_, err := fmt.Sscan(v.(string), &c.Currency, &c.Cents)
	return err
}

type Subscriber struct {
	Row
	Phone Phone `gorm:"size:64;uniqueIndex"`
}

// Phone is kept without what only makes it readable.
type Phone string

func (p Phone) Value() (driver.Value, error) {
	return strings.NewReplacer(" ", "", "-", "").Replace(string(p)), nil
}

type Masked struct {
	Row
	No pan `gorm:"size:64;uniqueIndex"`
}

type MaskedID struct {
	No pan `gorm:"size:64;primaryKey"`

	Counted
}

// pan is a number that no log shows.
type pan string

func (pan) String() string { return "****" }

type Optional struct {
	ID      uint
	No      *string `gorm:"size:64;uniqueIndex"`
	Amount  *int
	Version *dbguard.Version
}

type Ref struct {
	Shop string `gorm:"size:64;uniqueIndex:ref"`
	No   string `gorm:"size:64;uniqueIndex:ref"`
}

type Referring struct {
	Row
	Ref Ref `gorm:"embedded;embeddedPrefix:ref_"`
}

// at returns a time with more digits than any column keeps.
func at(hours int) time.Time {
	return time.Date(2026, 1, 2, hours, 4, 5, 678_912_345, time.UTC)
}

type Micros struct {
	ID uint
	At time.Time `gorm:"precision:6;uniqueIndex"`
}

type Millis struct {
	ID uint
	At time.Time `gorm:"precision:3;uniqueIndex"`
}

type Nullable struct {
	ID uint
	At sql.NullTime `gorm:"precision:3;uniqueIndex"`
}

type Seconds struct {
	ID uint
	At time.Time `gorm:"type:timestamp(0);uniqueIndex"`
}

type Day struct {
	ID uint
	At time.Time `gorm:"type:date;uniqueIndex"`
}

type TextTime struct {
	ID uint
	At string `gorm:"type:timestamp(0);uniqueIndex"`
}
