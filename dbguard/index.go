package dbguard

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

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

// naming returns the columns of each index that names a row.
func naming(indexes []uniqueIndex) (columns [][]string) {
	for _, i := range indexes {
		if i.names() {
			columns = append(columns, i.columns)
		}
	}
	return columns
}

// uniqueIndexes returns the unique indexes of a table, and remembers them unless there
// are none: the table may not have been made yet.
func (t *Tx) uniqueIndexes(table string) ([]uniqueIndex, error) {
	indexes, err := remembered(t, &t.plugin.indexes, table, readIndexes)
	if len(indexes) == 0 {
		t.plugin.indexes.Delete(table)
	}
	return indexes, err
}

func readIndexes(db *gorm.DB, table string) (indexes []uniqueIndex, err error) {
	var rows []struct {
		Name    string `gorm:"column:name"`
		Col     string `gorm:"column:col"` // "" for NULL
		Partial bool   `gorm:"column:partial"`
	}
	if err := readCatalogue(db, indexQueries, table, &rows); err != nil {
		return nil, fmt.Errorf("read unique indexes of %s: %w", table, err)
	}
	for _, r := range rows {
		if n := len(indexes); n == 0 || indexes[n-1].name != r.Name {
			indexes = append(indexes, uniqueIndex{name: r.Name, partial: r.Partial})
		}
		last := &indexes[len(indexes)-1]
		last.columns = append(last.columns, strings.ToLower(r.Col))
	}
	return indexes, nil
}
