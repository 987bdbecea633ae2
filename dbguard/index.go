package dbguard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
)

// Each query lists the columns of a table's unique indexes: index, column,
// ordered by index and position. Prefixes and expressions show as NULL columns.
const (
	mysqlUnique = `SELECT index_name AS name, IF(sub_part IS NULL, column_name, NULL) AS col
		FROM information_schema.statistics
		WHERE table_schema = COALESCE(NULLIF(@schema, ''), DATABASE()) AND table_name = @name AND non_unique = 0
		ORDER BY index_name, seq_in_index`
	sqliteUnique = `SELECT il.name AS name, ii.name AS col
		FROM pragma_index_list(@name) il, pragma_index_info(il.name) ii
		WHERE il."unique" = 1 AND il.partial = 0
		ORDER BY il.name, ii.seqno`
	postgresUnique = `SELECT c.relname AS name, a.attname AS col
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(attnum, n)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid = to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))
		AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND k.n <= i.indnkeyatts
		ORDER BY c.relname, k.n`
)

// A uniqueIndex is an index of a table, its columns in lower case.
type uniqueIndex struct {
	name    string
	columns []string
}

// uniqueIndexes returns the columns of each unique index of table. It reads the
// catalogue through the transaction, which creates no read view, and remembers
// what it found.
func (t *Tx) uniqueIndexes(ctx context.Context, table string) (columns [][]string, err error) {
	indexes, known := t.plugin.knownIndexes(table)
	if !known {
		indexes, err = t.plugin.indexesOf(t.db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true}), table)
	}
	columns = make([][]string, 0, len(indexes))
	for _, i := range indexes {
		columns = append(columns, i.columns)
	}
	return columns, err
}

func (p *plugin) knownIndexes(table string) (indexes []uniqueIndex, known bool) {
	found, known := p.indexes.Load(table)
	indexes, _ = found.([]uniqueIndex)
	return indexes, known
}

func (p *plugin) indexesOf(db *gorm.DB, table string) ([]uniqueIndex, error) {
	if known, ok := p.knownIndexes(table); ok {
		return known, nil
	}
	indexes, err := readIndexes(db, table)
	if err != nil {
		return nil, fmt.Errorf("read unique indexes of %s: %w", table, err)
	}
	if len(indexes) > 0 {
		p.indexes.Store(table, indexes)
	}
	return indexes, nil
}

func readIndexes(db *gorm.DB, table string) (indexes []uniqueIndex, err error) {
	query := mysqlUnique
	switch db.Name() {
	case "sqlite":
		query = sqliteUnique
	case "postgres":
		query = postgresUnique
	}
	var rows []struct {
		Name string
		Col  *string
	}
	if err := db.Raw(query, nameOf(table)).Scan(&rows).Error; err != nil {
		return nil, err
	}
	for _, r := range rows {
		if n := len(indexes); n == 0 || indexes[n-1].name != r.Name {
			indexes = append(indexes, uniqueIndex{name: r.Name})
		}
		col := "" // matches no column
		if r.Col != nil {
			col = strings.ToLower(*r.Col)
		}
		last := &indexes[len(indexes)-1]
		last.columns = append(last.columns, col)
	}
	return indexes, nil
}

// nameOf returns a table's name as the catalogues have it.
func nameOf(table string) map[string]any {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}
	return map[string]any{"schema": schema, "name": name}
}

// firedIndex returns the columns of the index that a duplicate on PostgreSQL
// met, nil if the driver does not tell.
func (t *Tx) firedIndex(c *Conflict) []string {
	indexes, _ := t.plugin.knownIndexes(c.Table)
	name := constraintOf(c.err)
	for _, i := range indexes {
		if name != "" && i.name == name {
			return i.columns
		}
	}
	return nil
}

// constraintOf returns the constraint that a driver's error names in a field:
// pgx calls it ConstraintName and pq Constraint.
func constraintOf(err error) string {
	var e interface{ SQLState() string }
	if !errors.As(err, &e) {
		return ""
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range []string{"ConstraintName", "Constraint"} {
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}
