package dbguard

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Each query lists the columns of a table's unique indexes: index, column,
// ordered by index and position. Prefixes and expressions show as NULL columns.
const (
	mysqlUnique = `SELECT index_name AS name, IF(sub_part IS NULL, column_name, NULL) AS col
		FROM information_schema.statistics
		WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ? AND non_unique = 0
		ORDER BY index_name, seq_in_index`
	sqliteUnique = `SELECT il.name AS name, ii.name AS col
		FROM pragma_index_list(?2) il, pragma_index_info(il.name) ii
		WHERE il."unique" = 1 AND il.partial = 0 AND ?1 = ?1
		ORDER BY il.name, ii.seqno`
)

// uniqueIndexes returns the columns of each unique index of table, in lower
// case. It reads the catalogue through the transaction, which creates no read
// view, and remembers what it found.
func (t *Tx) uniqueIndexes(ctx context.Context, table string) ([][]string, error) {
	if known, ok := t.plugin.indexes.Load(table); ok {
		return known.([][]string), nil
	}
	query := mysqlUnique
	if t.dialect.name == "sqlite" {
		query = sqliteUnique
	}
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "", table
	}

	var rows []struct {
		Name string
		Col  *string
	}
	s := t.db.Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true})
	if err := s.Raw(query, schema, name).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read unique indexes of %s: %w", table, err)
	}

	var indexes [][]string
	var last string
	for i, r := range rows {
		if i == 0 || r.Name != last {
			indexes = append(indexes, nil)
			last = r.Name
		}
		col := "" // matches no column
		if r.Col != nil {
			col = strings.ToLower(*r.Col)
		}
		indexes[len(indexes)-1] = append(indexes[len(indexes)-1], col)
	}
	if len(indexes) > 0 {
		t.plugin.indexes.Store(table, indexes)
	}
	return indexes, nil
}
