package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Facts are the properties of a table on which the proofs in its rows depend.
type Facts struct {
	// Transactional: a rollback undoes writes. Those to Aria and MyISAM remain.
	Transactional bool
	Triggers      bool // a write to it may write other rows
	Alters        bool // a trigger may alter a row that is inserted
	Indirect      bool // a write to it is one to another table, too, or may be: it is a view, or of a hierarchy
	Cascades      bool // a row may be deleted with one that it refers to
	// Rewritten are the columns of foreign keys that change with the row that they refer to,
	// or when that is deleted, separated by commas; anyColumn if they are not known.
	Rewritten string
}

// Rewrites reports whether a write to another table may change one of the columns.
func (f Facts) Rewrites(columns []string) bool {
	for rewritten := range strings.SplitSeq(f.Rewritten, ",") {
		if slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, rewritten) }) {
			return true
		}
	}
	return f.Rewritten == anyColumn
}

const anyColumn = "*"

// Each query reads the Facts of a table, in the order of their fields.
var factsQueries = map[string]string{
	"mysql": `SELECT
		COALESCE((SELECT e.transactions <> 'NO' FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine
			WHERE t.table_schema = s.name AND t.table_name = @name), TRUE) AS transactional,
		EXISTS (SELECT 1 FROM information_schema.triggers
			WHERE event_object_schema = s.name AND event_object_table = @name) AS triggers,
		EXISTS (SELECT 1 FROM information_schema.triggers
			WHERE event_object_schema = s.name AND event_object_table = @name
			AND action_timing = 'BEFORE' AND event_manipulation = 'INSERT') AS alters,
		TRUE AS indirect,
		EXISTS (SELECT 1 FROM information_schema.referential_constraints
			WHERE constraint_schema = s.name AND table_name = @name AND delete_rule = 'CASCADE') AS cascades,
		COALESCE((SELECT GROUP_CONCAT(k.column_name SEPARATOR ',') FROM information_schema.referential_constraints r
			JOIN information_schema.key_column_usage k ON k.constraint_schema = r.constraint_schema
				AND k.constraint_name = r.constraint_name AND k.table_name = r.table_name
			WHERE r.constraint_schema = s.name AND r.table_name = @name
			AND (r.update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR r.delete_rule IN ('SET NULL', 'SET DEFAULT'))), '') AS rewritten
		FROM (SELECT ` + mysqlSchema + ` AS name) s`,
	"postgres": `SELECT TRUE AS transactional,
		EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = t.id AND NOT tgisinternal)
			OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = t.id AND rulename <> '_RETURN') AS triggers,
		EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = t.id AND NOT tgisinternal AND tgtype & 6 = 6) AS alters,
		COALESCE((SELECT relkind NOT IN ('r', 'f') FROM pg_class WHERE oid = t.id), TRUE)
			OR EXISTS (SELECT 1 FROM pg_inherits WHERE t.id IN (inhrelid, inhparent)) AS indirect,
		EXISTS (SELECT 1 FROM pg_constraint WHERE conrelid = t.id AND contype = 'f' AND confdeltype = 'c') AS cascades,
		COALESCE((SELECT string_agg(a.attname::text, ',') FROM pg_constraint f JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = ANY (f.conkey)
			WHERE f.conrelid = t.id AND f.contype = 'f' AND (f.confupdtype IN ('c', 'n', 'd') OR f.confdeltype IN ('n', 'd'))), '') AS rewritten
		FROM (SELECT ` + postgresTable + ` AS id) t`,
	"sqlite": `SELECT TRUE AS transactional,
		EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = @name COLLATE NOCASE) AS triggers,
		FALSE AS alters,
		FALSE AS indirect,
		EXISTS (SELECT 1 FROM pragma_foreign_key_list(@name) WHERE on_delete = 'CASCADE') AS cascades,
		COALESCE((SELECT group_concat("from", ',') FROM pragma_foreign_key_list(@name)
			WHERE on_update IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR on_delete IN ('SET NULL', 'SET DEFAULT')), '') AS rewritten`,
}

// Facts returns the facts of a table.
func (s Source) Facts(ctx context.Context, table string) (f Facts, err error) {
	err = s.read(ctx, factsQueries, table, func(rows *sql.Rows) error {
		var rewritten sql.NullString // an empty text is NULL in a sql_mode of MariaDB
		err := rows.Scan(&f.Transactional, &f.Triggers, &f.Alters, &f.Indirect, &f.Cascades, &rewritten)
		f.Rewritten = rewritten.String
		return err
	})
	if err != nil {
		return Facts{}, fmt.Errorf("read what is known of table %s: %w", table, err)
	}
	return f, nil
}
