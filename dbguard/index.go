package dbguard

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// Each query lists the columns of a table's unique indexes: index, column,
// ordered by index and position. A prefix or an expression shows as NULL.
const (
	mysqlUnique = `SELECT index_name AS name, IF(sub_part IS NULL, column_name, NULL) AS col, FALSE AS partial
		FROM information_schema.statistics
		WHERE table_schema = COALESCE(NULLIF(@schema, ''), DATABASE()) AND table_name = @name AND non_unique = 0
		ORDER BY index_name, seq_in_index`
	sqliteUnique = `SELECT il.name AS name, ii.name AS col, il.partial AS partial
		FROM pragma_index_list(@name) il, pragma_index_info(il.name) ii
		WHERE il."unique" = 1
		ORDER BY il.name, ii.seqno`
	postgresUnique = `SELECT c.relname AS name, a.attname AS col, i.indpred IS NOT NULL AS partial
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(attnum, n)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid = to_regclass(CASE @schema WHEN '' THEN '' ELSE quote_ident(@schema) || '.' END || quote_ident(@name))
		AND i.indisunique AND i.indisvalid AND i.indimmediate AND k.n <= i.indnkeyatts
		ORDER BY c.relname, k.n`
)

// A uniqueIndex is an index of a table, its columns in lower case; "" is an expression
// or a prefix.
type uniqueIndex struct {
	name    string
	columns []string
	partial bool // it is over some of the rows
}

// names reports whether the columns of the index name a row.
func (i uniqueIndex) names() bool { return !i.partial && !slices.Contains(i.columns, "") }

// nameless says of which indexes the columns name no row.
func nameless(indexes []uniqueIndex) string {
	var found []string
	for _, i := range indexes {
		switch {
		case i.partial:
			found = append(found, i.name+" is partial")
		case !i.names():
			found = append(found, i.name+" has an expression or a prefix")
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (" + strings.Join(found, ", ") + ", so its columns name no row)"
}

// uniqueIndexes returns the columns of each unique index of table. It reads the
// catalogue through the transaction, which creates no read view, and remembers
// what it found.
func (t *Tx) uniqueIndexes(table string) (columns [][]string, err error) {
	indexes, known := t.plugin.knownIndexes(table)
	if !known {
		ctx, cancel := t.judging()
		defer cancel()
		indexes, err = t.plugin.indexesOf(t.quiet(ctx, t.db), table)
	}
	columns = make([][]string, 0, len(indexes))
	for _, i := range indexes {
		if i.names() {
			columns = append(columns, i.columns)
		}
	}
	return columns, err
}

func (t *Tx) nameless(table string) string {
	indexes, _ := t.plugin.knownIndexes(table)
	return nameless(indexes)
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
		Name string  `gorm:"column:name"`
		Col  *string `gorm:"column:col"`

		Partial bool `gorm:"column:partial"`
	}
	if err := db.Raw(query, nameOf(table)).Scan(&rows).Error; err != nil {
		return nil, err
	}
	for _, r := range rows {
		if n := len(indexes); n == 0 || indexes[n-1].name != r.Name {
			indexes = append(indexes, uniqueIndex{name: r.Name, partial: r.Partial})
		}
		col := ""
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
