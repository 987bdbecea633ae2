package wild

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// wantOnce does the same thing twice: the second time it is a repeat.
func (e *env) wantOnce(key string, op func() guard.Op, opts ...guard.Option) {
	e.t.Helper()
	e.want(e.Do(bg, key, op(), opts...), "done", 0)
	e.want(e.Do(bg, key, op(), opts...), "duplicate", 0)
}

func insert[T any](row T) func() guard.Op {
	return func() guard.Op { r := row; return guard.Insert(&r).Run }
}

// TestRepeatOfAKeyThatATriggerAlters: e-mails are kept in lower case.
func TestRepeatOfAKeyThatATriggerAlters(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		e.migrate(&Account{})
		lowerEmails(e, "accounts")
		e.wantOnce("user:Bob@x", insert(Account{Email: "Bob@x"}))
	})
}

// lowerEmails has the database keep the column email of a table in lower case, and
// distinguish cases.
func lowerEmails(e *env, table string) {
	e.t.Helper()
	e.exec(map[string]string{
		"mysql":    "ALTER TABLE " + table + " MODIFY email varchar(64) COLLATE utf8mb4_bin",
		"postgres": "CREATE FUNCTION low() RETURNS trigger AS $$ BEGIN NEW.email := lower(NEW.email); RETURN NEW; END $$ LANGUAGE plpgsql",
	})
	e.exec(map[string]string{
		"mysql":    "CREATE TRIGGER low BEFORE INSERT ON " + table + " FOR EACH ROW SET NEW.email = lower(NEW.email)",
		"postgres": "CREATE TRIGGER low BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION low()",
	})
}

type Price struct {
	ID     uint
	Amount string `gorm:"type:numeric(10,2);uniqueIndex"`
}

// TestRepeatOfARoundedKey: the column has fewer digits than the value.
func TestRepeatOfARoundedKey(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		e.migrate(&Price{})
		e.wantOnce("price", insert(Price{Amount: "1.505"}))
	})
}

// TestRowNamedInAnotherCase: the collation ignores case, as the default of MySQL and
// MariaDB does.
func TestRowNamedInAnotherCase(t *testing.T) {
	on(t, "mysql", func(e *env) {
		e.migrate(&Account{})
		e.create(&Account{Email: "bob@x"})
		var old Account
		e.must(e.db.Where("email = ?", "BOB@X").Take(&old).Error)
		e.must(e.db.Model(&Account{}).Where("id = ?", old.ID).Update("name", "n").Error)

		protects := guard.Protects(&Account{Email: "BOB@X"})
		e.want(e.Do(bg, "user", func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Account{Email: "bob@x"}).Error
		}, protects), "duplicate", 0)
		e.want(e.Do(bg, "user", func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&old).Update("name", "q").Error
		}, protects), "stale", 0)
		e.want(e.Do(bg, "user", func(_ context.Context, tx *gorm.DB) error {
			var a Account
			if err := tx.Where("email = ?", "BOB@X").Take(&a).Error; err != nil {
				return err
			}
			e.Forget("user")
			e.must(e.peer.Apply(bg, "user", guard.Update(&Account{ID: a.ID}, func(a *Account) error { a.Name = "r"; return nil })))
			return tx.Model(&a).Update("name", "q").Error
		}, protects), "intercepted", 1)
	})
}

// Alive has one live row per number, as MySQL can say it.
type Alive struct {
	ID        uint
	No        string `gorm:"size:64;uniqueIndex:na"`
	DeletedAt gorm.DeletedAt
	Alive     *bool `gorm:"->;type:tinyint(1) GENERATED ALWAYS AS (if(deleted_at is null, 1, null)) VIRTUAL;uniqueIndex:na"`
}

func TestRowNamedByAGeneratedColumn(t *testing.T) {
	on(t, "mysql", func(e *env) {
		e.migrate(&Alive{})
		create := func() guard.Op {
			return func(_ context.Context, tx *gorm.DB) error { return tx.Create(&Alive{No: "a"}).Error }
		}
		e.wantOnce("a", create, guard.Protects(&Alive{No: "a", Alive: new(true)}))
	})
}

// Member has one live row per name: DeletedAt is 0 in it, as gorm.io/plugin/soft_delete
// has it.
type Member struct {
	ID        uint
	Name      string `gorm:"size:64;not null;uniqueIndex:un"`
	DeletedAt uint   `gorm:"not null;uniqueIndex:un"`
}

// TestZeroInTheKeyIsAValue: what Check accepts can be inserted.
func TestZeroInTheKeyIsAValue(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Member{})
		e.must(dbguard.Check(bg, e.db, &Member{}))
		e.wantOnce("a", insert(Member{Name: "a"}))
	})
}
