package wild

import (
	"context"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
)

func (e *env) family() *Parent {
	e.t.Helper()
	e.migrate(&Parent{}, &Child{})
	p := &Parent{Name: "p", Children: []Child{{Name: "c"}}}
	e.create(p)
	return p
}

// rename changes nothing but the parent, as it loads it: with its children.
func rename(tx *gorm.DB, id uint) (*Parent, error) {
	var p Parent
	if err := tx.Preload("Children").Take(&p, id).Error; err != nil {
		return nil, err
	}
	p.Name = "new"
	return &p, tx.Save(&p).Error
}

// TestSaveOfAParentLeavesVersionsOfChildrenAlone: gorm's Save upserts the children that
// are loaded, with their foreign key only. Somebody else holds the child's key. On SQLite
// the two can't be at work at once.
func TestSaveOfAParentLeavesVersionsOfChildrenAlone(t *testing.T) {
	on(t, "mysql postgres", func(e *env) {
		p := e.family()
		e.want(e.Apply(bg, "child:1", guard.Update(&Child{ID: p.Children[0].ID}, func(c *Child) error {
			e.must(e.peer.Do(bg, "parent:1", func(_ context.Context, tx *gorm.DB) error {
				_, err := rename(tx, p.ID)
				return err
			}, guard.Protects(&Parent{ID: p.ID})))
			c.Name = "z"
			return nil
		})), "done", 0)
	})
}

// TestChildIsSavedAfterItsParent, by the same caller.
func TestChildIsSavedAfterItsParent(t *testing.T) {
	each(t, func(e *env) {
		id := e.family().ID
		e.want(e.Do(bg, "parent:1", func(_ context.Context, tx *gorm.DB) error {
			p, err := rename(tx, id)
			if err != nil {
				return err
			}
			p.Children[0].Name = "z"
			return tx.Save(&p.Children[0]).Error
		}, guard.Protects(&Parent{ID: id})), "done", 0)
	})
}

// TestTriggerThatRaisesAVersion is not another writer. The trigger does what the
// documentation requires of those who write past gorm.
func TestTriggerThatRaisesAVersion(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Parent{}, &Child{})
		raisesVersion(e, "children", "parents", "id = NEW.parent_id")
		e.create(&Parent{ID: 1})
		e.want(e.Do(bg, "parent:1", func(_ context.Context, tx *gorm.DB) error {
			var p Parent
			if err := tx.Take(&p, 1).Error; err != nil {
				return err
			}
			if err := tx.Create(&Child{ParentID: 1}).Error; err != nil {
				return err
			}
			return tx.Take(&p, 1).Error
		}, guard.Protects(&Parent{ID: 1})), "done", 0)
	})
}

// raisesVersion has an insert into one table raise the version of a row of another.
func raisesVersion(e *env, of, in, where string) {
	e.t.Helper()
	trigger(e, of, "UPDATE "+in+" SET name = 'sum', version = version + 1 WHERE "+where)
}

// trigger has the database run a statement after each insert into a table.
func trigger(e *env, table, statement string) {
	e.t.Helper()
	if e.db.Name() == "postgres" {
		e.must(e.db.Exec("CREATE FUNCTION run() RETURNS trigger AS $$ BEGIN " + statement + "; RETURN NEW; END $$ LANGUAGE plpgsql").Error)
	}
	e.exec(map[string]string{
		"mysql":    "CREATE TRIGGER tr AFTER INSERT ON " + table + " FOR EACH ROW " + statement,
		"sqlite":   "CREATE TRIGGER tr AFTER INSERT ON " + table + " BEGIN " + statement + "; END",
		"postgres": "CREATE TRIGGER tr AFTER INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION run()",
	})
}

// TestOwnUpsertIsNoRepeat: the operation itself has put the row there.
func TestOwnUpsertIsNoRepeat(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Account{})
		e.want(e.Do(bg, "a", func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&Account{Email: "a"}).Error; err != nil {
				return err
			}
			return tx.Create(&Account{Email: "a"}).Error
		}, guard.Protects(&Account{Email: "a"})), "conflict", 0)
	})
}

// TestUpdateFromAnotherVersionedTable names its own version. MySQL has no such update.
func TestUpdateFromAnotherVersionedTable(t *testing.T) {
	on(t, "postgres sqlite", func(e *env) {
		e.family()
		e.must(e.db.Model(&Parent{}).Clauses(clause.From{Tables: []clause.Table{{Name: "children"}}}).
			Where("children.parent_id = parents.id").Update("name", gorm.Expr("children.name")).Error)
		var p Parent
		e.must(e.db.Take(&p).Error)
		if p.Name != "c" || p.Version != 2 {
			e.t.Errorf("the parent is %+v, want the child's name and version 2", p)
		}
	})
}
