package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// An Index is a unique index of a table, its columns in lower case; "" is an expression
// or a prefix.
type Index struct {
	Name    string
	Columns []string
	Partial bool // it is over some of the rows
}

// names reports whether the columns of the index name a row.
func (i Index) names() bool { return !i.Partial && !slices.Contains(i.Columns, "") }

// Indexes returns the unique indexes of a table. There are none if there is no such table.
func Indexes(db *gorm.DB, table string) (indexes []Index, err error) {
	var rows []struct {
		Name    string `gorm:"column:name"`
		Col     string `gorm:"column:col"` // "" for NULL
		Partial bool   `gorm:"column:partial"`
	}
	if err := read(db, indexQueries, table, &rows); err != nil {
		return nil, fmt.Errorf("read unique indexes of %s: %w", table, err)
	}
	for _, r := range rows {
		if n := len(indexes); n == 0 || indexes[n-1].Name != r.Name {
			indexes = append(indexes, Index{Name: r.Name, Partial: r.Partial})
		}
		last := &indexes[len(indexes)-1]
		last.Columns = append(last.Columns, strings.ToLower(r.Col))
	}
	return indexes, nil
}

// Each query lists the columns of a table's unique indexes, ordered by index and
// position. A prefix or an expression shows as NULL.
var indexQueries = map[string]string{
	"mysql": `SELECT index_name AS name, IF(sub_part IS NULL, column_name, NULL) AS col, FALSE AS partial
		FROM information_schema.statistics
		WHERE table_schema = ` + mysqlSchema + ` AND table_name = @name AND non_unique = 0
		ORDER BY index_name, seq_in_index`,
	"postgres": `SELECT c.relname AS name, a.attname AS col, i.indpred IS NOT NULL AS partial
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(attnum, n)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid = ` + postgresTable + `
		AND i.indisunique AND i.indisvalid AND i.indimmediate AND k.n <= i.indnkeyatts
		ORDER BY c.relname, k.n`,
	"sqlite": `SELECT il.name AS name, ii.name AS col, il.partial AS partial
		FROM pragma_index_list(@name) il, pragma_index_info(il.name) ii
		WHERE il."unique" = 1
		ORDER BY il.name, ii.seqno`,
}

// UniqueKeys returns the columns of each index that names a row.
func UniqueKeys(indexes []Index) (columns [][]string) {
	for _, i := range indexes {
		if i.names() {
			columns = append(columns, i.Columns)
		}
	}
	return columns
}

// Unusable says of which indexes the columns name no row.
func Unusable(indexes []Index) string {
	var found []string
	for _, i := range indexes {
		switch {
		case i.Partial:
			found = append(found, i.Name+" is partial")
		case !i.names():
			found = append(found, i.Name+" has an expression or a prefix")
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (" + strings.Join(found, ", ") + ", so its columns name no row)"
}

// OnlyIndex reports whether no other table of its schema is known to have an index of the
// name, which is not that of all primary keys. It is for MySQL and MariaDB.
func (t Tables) OnlyIndex(table, index string) bool {
	if strings.EqualFold(index, "PRIMARY") {
		return false
	}
	db, done := t.Open()
	defer done()
	var others int64
	err := db.Raw(`SELECT COUNT(*) FROM information_schema.statistics
		WHERE index_name = @index AND table_schema = `+mysqlSchema+` AND table_name <> @name`,
		nameOf(table), map[string]any{"index": index}).Scan(&others).Error
	return err == nil && others == 0
}
