package catalogue

import (
	"fmt"

	"gorm.io/gorm"
)

// Facts are the properties of a table that decide what its rows prove.
type Facts struct {
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

// FactsOf returns the facts of a table.
func FactsOf(db *gorm.DB, table string) (found Facts, err error) {
	if err := read(db, factsQueries, table, &found); err != nil {
		return Facts{}, fmt.Errorf("read what is known of table %s: %w", table, err)
	}
	return found, nil
}
