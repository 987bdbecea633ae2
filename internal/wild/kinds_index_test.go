package wild

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// notNamed is what Protects says to a row with a zero in its key.
var notNamed = []exception{{in: "business", refused: dbguard.ErrUnprotectable, says: "just the columns (no)"}}

// indexKinds are what makes rows unique.
var indexKinds = []tried{
	kind[Line]{name: "composite", row: func(n int) *Line { return &Line{Shop: "s", No: n} }},
	kind[Line]{name: "composite with a zero", row: func(n int) *Line { return &Line{No: n} }, except: notNamed},
	kind[Removable]{name: "zero as the time of deletion", row: func(n int) *Removable { return &Removable{No: no(n)} }, except: notNamed},
	kind[Optional]{name: "NULL in the key", row: func(int) *Optional { return &Optional{} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "unique index"}}},
	kind[Note]{name: "auto-increment only", row: func(int) *Note { return &Note{Text: "t"} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "unique index"}}},
	kind[Numbered]{name: "two keys", row: func(n int) *Numbered { return &Numbered{ID: int64(n), No: no(n)} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "name one with Protects: (no) or (id)"}}},
	kind[Numbered]{name: "two keys, one named", row: func(n int) *Numbered { return &Numbered{ID: int64(n), No: no(n)} },
		key: func(n int) any { return &Numbered{No: no(n)} }},
	kind[Keyless]{name: "no primary key", row: func(n int) *Keyless { return &Keyless{No: no(n)} }},
	kind[Live]{name: "partial index", on: "postgres sqlite", row: func(n int) *Live { return &Live{No: no(n)} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "partial"}}},
	kind[Lowered]{name: "expression", on: "mysql9 postgres sqlite", row: func(n int) *Lowered { return &Lowered{No: no(n)} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "expression"}}},
	kind[Both]{name: "expression beside a column", on: "mysql9 postgres sqlite", row: func(n int) *Both { return &Both{No: no(n)} }},
	kind[Generated]{name: "generated column", row: func(n int) *Generated { return &Generated{No: no(n)} }, insert: create[Generated],
		key: func(n int) any { return &Generated{No: no(n), Alive: new(1)} }},
	kind[Defaulted]{name: "default by tag", row: func(n int) *Defaulted { return &Defaulted{No: no(n)} }, insert: create[Defaulted],
		key: func(n int) any { return &Defaulted{Region: "eu", No: no(n)} }},
	kind[ServerDefaulted]{name: "default by the database", row: func(n int) *ServerDefaulted { return &ServerDefaulted{No: no(n)} }, insert: create[ServerDefaulted],
		key: func(n int) any { return &ServerDefaulted{Region: "eu", No: no(n)} }},
}

type Line struct {
	Row
	Shop string `gorm:"size:64;not null;uniqueIndex:sn"`
	No   int    `gorm:"not null;uniqueIndex:sn"`
}

// Removable is deleted by the time of its deletion, as gorm.io/plugin/soft_delete
// does it.
type Removable struct {
	Row
	No        string `gorm:"size:64;not null;uniqueIndex:nd"`
	DeletedAt int64  `gorm:"not null;uniqueIndex:nd"`
}

type Note struct {
	ID   uint
	Text string `gorm:"size:64"`
}

type Numbered struct {
	ID int64  `gorm:"autoIncrement:false"`
	No string `gorm:"size:64;uniqueIndex"`

	Counted
}

type Keyless struct {
	No string `gorm:"size:64;uniqueIndex"`
}

type Live struct {
	ID        uint
	No        string `gorm:"size:64;uniqueIndex:,where:deleted_at IS NULL"`
	DeletedAt gorm.DeletedAt
}

type Lowered struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex:,expression:(lower(no))"`
}

type Both struct {
	Row
	No string `gorm:"size:64;uniqueIndex:ex,expression:(lower(no));uniqueIndex:plain"`
}

// Generated has one row per number that is not deleted.
type Generated struct {
	Row
	No        string `gorm:"size:64;uniqueIndex:na"`
	DeletedAt gorm.DeletedAt
	Alive     *int `gorm:"->;type:int GENERATED ALWAYS AS (CASE WHEN deleted_at IS NULL THEN 1 END) STORED;uniqueIndex:na"`
}

type Defaulted struct {
	Row
	Region string `gorm:"size:8;default:eu;uniqueIndex:rn"`
	No     string `gorm:"size:64;uniqueIndex:rn"`
}

type ServerDefaulted struct {
	Row
	Region string `gorm:"type:varchar(8) DEFAULT 'eu';default:(-);uniqueIndex:rn"`
	No     string `gorm:"size:64;uniqueIndex:rn"`
}
