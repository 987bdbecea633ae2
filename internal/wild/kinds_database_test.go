package wild

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// databaseKinds are tables that the database has its own ideas about.
var databaseKinds = []tried{
	kind[Address]{name: "trigger that alters the key", on: "mysql postgres",
		row: func(n int) *Address { return &Address{Email: "Bob@" + no(n)} }, after: func(e *env) { lowerEmails(e, "addresses") }},
	kind[Address]{name: "trigger that alters the key, altered before", on: "mysql postgres",
		row: func(n int) *Address { return &Address{Email: "bob@" + no(n)} }, after: func(e *env) { lowerEmails(e, "addresses") }},
	kind[Parent]{name: "trigger that raises the version", row: func(n int) *Parent { return &Parent{ID: uint(n)} }, insert: create[Parent],
		after: func(e *env) {
			e.migrate(&Child{})
			trigger(e, "children", "UPDATE parents SET amount = amount + 1, version = version + 1 WHERE id = NEW.parent_id")
		},
		update: func(tx *gorm.DB, p *Parent) error {
			if err := tx.Create(&Child{ParentID: p.ID}).Error; err != nil {
				return err
			}
			now := Parent{ID: p.ID}
			if err := tx.Take(&now).Error; err != nil {
				return err
			}
			now.Version = p.Version + 1 // after the trigger
			return tx.Save(&now).Error
		}},
	kind[Item]{name: "trigger that inserts elsewhere", row: item, after: func(e *env) {
		e.migrate(&Note{})
		trigger(e, "items", "INSERT INTO notes (text) VALUES (NEW.no)")
	}},
	kind[Item]{name: "trigger whose insert is a duplicate", row: item, after: func(e *env) {
		e.migrate(&Coded{})
		e.create(&Coded{Code: no(1)})
		trigger(e, "items", "INSERT INTO codeds (code) VALUES (NEW.no)")
	}, except: []exception{
		{in: "first again elsewhere", blind: "conflict", why: "the row that is in the way is another table's"},
	}},
	kind[Secret]{name: "row-level security", on: "postgres", config: rowSecurity,
		row: func(n int) *Secret { return &Secret{No: no(n), Tenant: "other"} }, key: func(n int) any { return &Secret{No: no(n)} }},
	kind[Item]{name: "other schema", on: "mysql postgres", config: inShop, row: item},
	kind[Item]{name: "other schema, with a namesake", on: "mysql postgres", row: item,
		config: inShop, after: func(e *env) { e.must(e.open().AutoMigrate(&Item{})) }},
	kind[Item]{name: "search_path", on: "postgres", row: item, config: func(e *env) gorm.Option {
		return altered("search_path = " + e.shop())(e)
	}},
	kind[Coded]{name: "partitions", on: "mysql postgres", row: func(n int) *Coded { return &Coded{Code: no(n)} }, setup: func(e *env) {
		e.exec(map[string]string{
			"mysql": "CREATE TABLE codeds (code varchar(64) PRIMARY KEY, amount bigint, version bigint NOT NULL DEFAULT 1) PARTITION BY KEY (code) PARTITIONS 2",
			"postgres": "CREATE TABLE codeds (code varchar(64) PRIMARY KEY, amount bigint, version bigint NOT NULL DEFAULT 1) PARTITION BY HASH (code);" +
				"CREATE TABLE codeds_0 PARTITION OF codeds FOR VALUES WITH (MODULUS 2, REMAINDER 0);" +
				"CREATE TABLE codeds_1 PARTITION OF codeds FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
		})
	}},
	kind[Seen]{name: "view", on: "mysql postgres", after: seen, row: func(n int) *Seen { return &Seen{No: no(n)} },
		except: []exception{{refused: dbguard.ErrUnprotectable, says: "unique index"}}},
	kind[Seen]{name: "view, its table named", on: "mysql postgres", after: seen, row: func(n int) *Seen { return &Seen{No: no(n)} }, insert: create[Seen],
		key: func(n int) any { return item(n) }, except: []exception{
			{in: "again elsewhere", blind: "conflict", why: "nothing says which table is behind a view"},
			{in: "overlap", blind: "conflict", events: 1, why: "so it is when the lock is lost, which its release reports"},
		}},
}

type Address struct {
	ID    uint
	Email string `gorm:"size:64;uniqueIndex"`
}

// Secret has no column that the database would have to return.
type Secret struct {
	No     string `gorm:"size:64;primaryKey"`
	Tenant string `gorm:"size:64"`
}

// rowSecurity shows sessions none of the rows that they insert.
func rowSecurity(e *env) gorm.Option {
	e.t.Helper()
	e.migrate(&Secret{})
	role := e.db.Migrator().CurrentDatabase() + "_app"
	for _, statement := range []string{
		"CREATE ROLE " + role,
		"GRANT ALL ON TABLE secrets TO " + role,
		"ALTER TABLE secrets ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY own ON secrets USING (tenant = 'own') WITH CHECK (true)",
	} {
		e.must(e.db.Exec(statement).Error)
	}
	e.t.Cleanup(func() {
		e.must(e.db.Exec("DROP OWNED BY " + role).Error)
		e.must(e.db.Exec("DROP ROLE " + role).Error)
	})
	return altered("role = " + role)(e)
}

// Seen is a view on items.
type Seen struct {
	ID uint
	No string
}

func (Seen) TableName() string { return "seen" }

func seen(e *env) {
	e.t.Helper()
	e.migrate(&Item{})
	e.must(e.db.Migrator().DropTable(&Seen{}))
	e.must(e.db.Exec("CREATE VIEW seen AS SELECT id, no FROM items").Error)
}
