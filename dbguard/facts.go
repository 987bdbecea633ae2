package dbguard

import (
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"
)

// facts are the properties of a table that decide what its rows prove.
type facts struct {
	// Transactional: a rollback undoes writes. Those to Aria and MyISAM remain.
	Transactional bool `gorm:"column:transactional"`
	Triggers      bool `gorm:"column:triggers"` // a write to it may write other rows
	Alters        bool `gorm:"column:alters"`   // a trigger may alter a row that is inserted
	Cascades      bool `gorm:"column:cascades"` // a row may be deleted with one that it refers to
}

// Each query reads the facts of a table.
var factsQueries = map[string]string{
	"mysql": `SELECT
		COALESCE((SELECT e.transactions <> 'NO' FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine
			WHERE t.table_schema = s.name AND t.table_name = @name), TRUE) AS transactional,
		EXISTS (SELECT 1 FROM information_schema.triggers
			WHERE event_object_schema = s.name AND event_object_table = @name) AS triggers,
		EXISTS (SELECT 1 FROM information_schema.triggers
			WHERE event_object_schema = s.name AND event_object_table = @name
			AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT') AS alters,
		EXISTS (SELECT 1 FROM information_schema.referential_constraints
			WHERE constraint_schema = s.name AND table_name = @name AND delete_rule = 'CASCADE') AS cascades
		FROM (SELECT ` + mysqlSchema + ` AS name) s`,
	"postgres": `SELECT TRUE AS transactional,
		EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = t.id AND NOT tgisinternal)
			OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = t.id AND rulename <> '_RETURN') AS triggers,
		EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = t.id AND NOT tgisinternal AND tgtype & 6 = 6) AS alters,
		EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = t.id AND contype = 'f' AND confdeltype = 'c') AS cascades
		FROM (SELECT ` + postgresTable + ` AS id) t`,
	"sqlite": `SELECT TRUE AS transactional,
		EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = @name COLLATE NOCASE) AS triggers,
		FALSE AS alters,
		EXISTS (SELECT 1 FROM pragma_foreign_key_list(@name) WHERE on_delete = 'CASCADE') AS cascades`,
}

// factsOf returns the facts of a table, and remembers them. If they can't be read, it
// returns those from which least follows.
func (t *Tx) factsOf(table string) facts {
	known, err := remembered(t, &t.plugin.facts, table, readFacts)
	if err == nil {
		return known
	}
	known = facts{Transactional: true, Triggers: true, Alters: true, Cascades: true}
	if fromServer(err) && postgresCode(err) != pgAborted { // it knows no such catalogue
		t.plugin.facts.Store(table, known)
	}
	return known
}

func readFacts(db *gorm.DB, table string) (found facts, err error) {
	if err := readCatalogue(db, factsQueries, table, &found); err != nil {
		return facts{}, fmt.Errorf("read what is known of table %s: %w", table, err)
	}
	return found, nil
}

// touched reports whether the first n writes of the transaction may have changed a row. A
// write to another row may do so by a trigger or a cascade. MySQL and MariaDB do not
// show all users the triggers.
func (t *Tx) touched(r *protectedRow, n int) bool {
	t.mu.Lock()
	called, writes := t.called, t.writes[:min(n, len(t.writes))]
	t.mu.Unlock()
	if called || len(writes) > 0 && t.dialect.name == "mysql" {
		return true
	}
	for i := range writes {
		w := &writes[i]
		if w.how == raw || w.mayBeTo(r.table) && (!w.whole || slices.Contains(w.rows, r)) ||
			t.factsOf(w.table).Triggers || w.deletes && t.factsOf(r.table).Cascades {
			return true
		}
	}
	return false
}

// clean reports whether the transaction can't have written a row, so that it reads what
// others have committed.
func (t *Tx) clean(r *protectedRow) bool { return !t.touched(r, math.MaxInt) }
