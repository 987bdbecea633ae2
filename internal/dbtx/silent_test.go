package dbtx_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// silent is a write that counts no row, by statements before it. It changes the version of the stock 1.
type silent struct {
	name  string
	setup []string
	write func(*gorm.DB) error
}

func silentWrites(db *gorm.DB) []silent {
	if db.Name() == "mysql" {
		return []silent{{
			"a trigger of MySQL fires for a row that stays as it is",
			[]string{
				"CREATE TABLE twins (id BIGINT PRIMARY KEY, `left` BIGINT)",
				"INSERT INTO twins VALUES (1, 9)",
				"CREATE TRIGGER touches AFTER UPDATE ON twins FOR EACH ROW UPDATE stocks SET version = version + 1 WHERE id = NEW.id",
			},
			func(tx *gorm.DB) error { return tx.Table("twins").Where("id = 1").UpdateColumn("left", 9).Error },
		}}
	}
	remove := func(tx *gorm.DB) error { return tx.Where("id = 1").Delete(&Stock{}).Error }
	return []silent{{
		"a trigger hides the row instead",
		[]string{
			`CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
				UPDATE stocks SET version = version + 1 WHERE id = OLD.id; RETURN NULL; END'`,
			"CREATE TRIGGER hides BEFORE DELETE ON stocks FOR EACH ROW EXECUTE FUNCTION hide()",
		},
		remove,
	}, {
		"a rule hides the row instead",
		[]string{
			"DROP TRIGGER hides ON stocks",
			"CREATE RULE hides AS ON DELETE TO stocks DO INSTEAD UPDATE stocks SET version = version + 1 WHERE id = OLD.id",
		},
		remove,
	}, {
		"a function writes in a condition that no row meets",
		[]string{
			"DROP RULE hides ON stocks",
			`CREATE FUNCTION touch() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN
				UPDATE stocks SET version = version + 1 WHERE id = 1; RETURN FALSE; END'`,
			"CREATE TABLE twins (id BIGINT)", "INSERT INTO twins VALUES (1)",
		},
		func(tx *gorm.DB) error { return tx.Table("twins").Where("touch()").UpdateColumn("id", 2).Error },
	}, {
		"a trigger of the table below a view hides the row instead",
		[]string{
			"CREATE VIEW few AS SELECT * FROM stocks",
			"CREATE TRIGGER hides BEFORE DELETE ON stocks FOR EACH ROW EXECUTE FUNCTION hide()",
		},
		func(tx *gorm.DB) error { return tx.Table("few").Where("id = 1").Delete(&Stock{}).Error },
	}}
}

func version(t *testing.T, db *gorm.DB) (v int64) {
	t.Helper()
	wantNil(t, db.Raw("SELECT version FROM stocks WHERE id = 1").Row().Scan(&v))
	return v
}

// TestSilentWrite: a write of gorm that counts no row, because a trigger or a rule has written in its
// place, is a write: its lost COMMIT has not taken effect, and it is neither covered nor only a claim's.
func TestSilentWrite(t *testing.T) {
	t.Parallel()
	eachLink(t, func(t *testing.T, direct, db *gorm.DB, k *testdb.Link) {
		wantNil(t, direct.Create(&Stock{ID: 1, Left: 9}).Error)
		for _, s := range silentWrites(db) {
			for _, statement := range s.setup {
				wantNil(t, direct.Exec(statement).Error)
			}
			for _, arrives := range []bool{false, true} {
				before := version(t, direct)
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, s.write(tx.DB()))
				if !tx.Coverage().Wrote || tx.OnlyClaimed() {
					t.Errorf("%s: coverage is %+v, only a claim: %v", s.name, tx.Coverage(), tx.OnlyClaimed())
				}
				lose(t, tx, k, arrives)
				o, err := tx.Resolve(bg)
				if done := version(t, direct) > before; done != arrives || o != dbtx.Unresolved && (o == dbtx.Committed) != done {
					t.Errorf("%s: resolved as %v, %v, and done: %v", s.name, o, err, done)
				}
			}
		}
	})
}

// TestSilentWriteIsTheOwn: what a trigger or a rule has written in the place of a statement that counts no
// row is not taken for another writer's.
func TestSilentWriteIsTheOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		if db.Name() == "sqlite" {
			return
		}
		wantNil(t, db.Create(&Stock{ID: 1, Left: 9}).Error)
		for _, s := range silentWrites(db) {
			for _, statement := range s.setup {
				wantNil(t, db.Exec(statement).Error)
			}
			tx := begin(t, db, dbtx.Options{Key: "stock:1"})
			wantNil(t, tx.Protect(&Stock{ID: 1}))
			wantNil(t, tx.DB().Take(&Stock{}, 1).Error)
			wantNil(t, s.write(tx.DB()))
			if err := tx.DB().Take(&Stock{}, 1).Error; err != nil {
				t.Errorf("%s: the row is read with %v", s.name, err)
			}
			wantNil(t, tx.Commit())
		}
	})
}

// TestStaleOnATableWithTriggers: an update that has matched no row proves another writer at once, though
// its table has triggers: the operation may swallow the conflict.
func TestStaleOnATableWithTriggers(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		trigger := map[string][]string{
			"mysql": {"CREATE TRIGGER keeps BEFORE UPDATE ON stocks FOR EACH ROW SET NEW.id = OLD.id"},
			"postgres": {
				"CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
				"CREATE TRIGGER keeps BEFORE UPDATE ON stocks FOR EACH ROW EXECUTE FUNCTION keep()",
			},
		}[db.Name()]
		for _, statement := range trigger {
			wantNil(t, db.Exec(statement).Error)
		}
		wantNil(t, db.Create(&Stock{ID: 1, Left: 9}).Error)
		tx := begin(t, db, dbtx.Options{Key: "stock:1"})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		wantNil(t, db.Model(&Stock{ID: 1, Version: 1}).Update("left", 8).Error)
		if err := tx.DB().Model(&Stock{ID: 1, Version: 1}).Update("left", 7).Error; err == nil {
			t.Error("the update of an old version has succeeded")
		}
		if tx.Poisoned() == nil || !overlap(tx.Conflict()) {
			t.Errorf("the conflict is %+v", tx.Conflict())
		}
	})
}
