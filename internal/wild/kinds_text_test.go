package wild

import (
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// textKinds are rows that are spelled in more than one way.
var textKinds = []tried{
	kind[Mail]{name: "case ignored", setup: citext, row: mail("bob")},
	kind[Mail]{name: "case ignored, named in another", setup: citext, row: mail("bob"), insert: create[Mail], update: save[Mail],
		key: func(n int) any { return mail("BOB")(n) }},
	kind[Mail]{name: "case ignored, repeated in another", setup: citext, row: mail("bob"), again: mail("BOB")},
	kind[Login]{name: "case ignored in the primary key", setup: citext, row: func(n int) *Login { return &Login{Name: anyCase(no(n))} }},
	kind[Login]{name: "case ignored in the primary key, named in another", setup: citext, row: func(n int) *Login { return &Login{Name: anyCase(no(n))} },
		insert: create[Login], update: save[Login], key: func(n int) any { return &Login{Name: anyCase(strings.ToUpper(no(n)))} }},
	kind[Mail]{name: "accents ignored", on: "mysql", row: mail("cafe"), again: mail("café")},
	kind[Mail]{name: "space at the end ignored", on: "mysql", row: mail("bob"), insert: create[Mail], update: save[Mail],
		key: func(n int) any { m := mail("bob")(n); m.Email += " "; return m }},
	kind[Nondeterministic]{name: "nondeterministic collation", on: "postgres", setup: func(e *env) {
		e.must(e.db.Exec("CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)").Error)
	}, row: func(n int) *Nondeterministic { return &Nondeterministic{No: no(n)} },
		insert: create[Nondeterministic], update: save[Nondeterministic], key: func(n int) any { return &Nondeterministic{No: strings.ToUpper(no(n))} }},
	kind[Padded]{name: "char(n)", row: func(n int) *Padded { return &Padded{Code: no(n)} }, update: save[Padded]},
}

// create is the habit of those who name rows by Protects.
func create[T any](tx *gorm.DB, row *T) error { return tx.Create(row).Error }

func mail(name string) func(n int) *Mail {
	return func(n int) *Mail { return &Mail{Email: anyCase(name + no(n))} }
}

func citext(e *env) {
	if e.db.Name() == "postgres" {
		e.must(e.db.Exec("CREATE EXTENSION citext").Error)
	}
}

type Mail struct {
	Row
	Email anyCase `gorm:"uniqueIndex"`
}

type Login struct {
	Name anyCase `gorm:"primaryKey"`

	Counted
}

type anyCase string

func (anyCase) GormDBDataType(db *gorm.DB, _ *schema.Field) string {
	return map[string]string{
		"mysql":    "varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
		"postgres": "citext",
		"sqlite":   "text COLLATE NOCASE",
	}[db.Name()]
}

type Nondeterministic struct {
	Row
	No string `gorm:"type:text COLLATE ci;uniqueIndex"`
}

type Padded struct {
	Row
	Code string `gorm:"type:char(12);uniqueIndex"`
}
