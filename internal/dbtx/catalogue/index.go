package catalogue

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// An Index is a unique index of a table, as the database has it: its columns in lower case;
// "" is an expression or a prefix.
type Index struct {
	Name    string
	Columns []string
	Primary bool   // it is that of the table's primary key
	Flaw    string // why two rows may have equal columns after all, for people; "" if none may
}

// flaw returns the reason why the columns of the index name no row; "" if they name
// one.
func (i Index) flaw() string {
	if i.Flaw == "" && slices.Contains(i.Columns, "") {
		return "has an expression or a prefix"
	}
	return i.Flaw
}

// Indexes returns the unique indexes of a table. There are none if there is no such table.
func (s Source) Indexes(ctx context.Context, table string) (indexes []Index, err error) {
	err = s.read(ctx, indexQueries, table, func(rows *sql.Rows) error {
		var one Index
		var column, flaw sql.NullString // an empty text is NULL in a sql_mode of MariaDB
		if err := rows.Scan(&one.Name, &column, &one.Primary, &flaw); err != nil {
			return err
		}
		one.Flaw = flaw.String
		if n := len(indexes); n == 0 || indexes[n-1].Name != one.Name {
			indexes = append(indexes, one)
		}
		last := &indexes[len(indexes)-1]
		last.Columns = append(last.Columns, strings.ToLower(column.String))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read unique indexes of %s: %w", table, err)
	}
	return indexes, nil
}

// Each query lists the columns of a table's unique indexes, ordered by index and
// position. A prefix or an expression shows as NULL. SQLite lists no index of a primary
// key that is the number of the row.
var indexQueries = map[string]string{
	"mysql": `SELECT index_name AS name, IF(sub_part IS NULL, column_name, NULL) AS col, index_name = 'PRIMARY' AS prim, '' AS flaw
		FROM information_schema.statistics
		WHERE table_schema = ` + mysqlSchema + ` AND table_name = @name AND non_unique = 0
		ORDER BY index_name, seq_in_index`,
	"postgres": `SELECT c.relname AS name, a.attname AS col, i.indisprimary AS prim, CASE
			WHEN i.indpred IS NOT NULL THEN 'is partial'
			WHEN NOT i.indisvalid THEN 'is not valid'
			WHEN NOT i.indimmediate THEN 'is deferrable'
			WHEN t.relkind <> 'p' AND EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = t.oid) THEN 'leaves out the tables that inherit from this one'
			ELSE '' END AS flaw
		FROM pg_index i
		JOIN pg_class c ON c.oid = i.indexrelid
		JOIN pg_class t ON t.oid = i.indrelid
		CROSS JOIN unnest(i.indkey) WITH ORDINALITY k(attnum, n)
		LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
		WHERE i.indrelid = ` + postgresTable + `
		AND i.indisunique AND k.n <= i.indnkeyatts
		ORDER BY c.relname, k.n`,
	"sqlite": `SELECT name, col, prim, flaw FROM (SELECT il.name AS name, ii.name AS col, il.origin = 'pk' AS prim, CASE il.partial WHEN 1 THEN 'is partial' ELSE '' END AS flaw, ii.seqno AS n
		FROM pragma_index_list(@name) il, pragma_index_info(il.name) ii
		WHERE il."unique" = 1
		UNION ALL SELECT 'primary key', ti.name, TRUE, '', ti.pk
		FROM pragma_table_info(@name) ti
		WHERE ti.pk > 0 AND NOT EXISTS (SELECT 1 FROM pragma_index_list(@name) WHERE origin = 'pk')
		) ORDER BY name, n`,
}

// UniqueKeys returns the columns of each index that names a row.
func UniqueKeys(indexes []Index) (columns [][]string) {
	columns = make([][]string, 0, len(indexes))
	for _, i := range indexes {
		if i.flaw() == "" {
			columns = append(columns, i.Columns)
		}
	}
	return columns
}

// IsUnique reports whether the columns are those of an index that names a row.
func IsUnique(indexes []Index, columns []string) bool {
	return slices.ContainsFunc(indexes, func(i Index) bool { return i.flaw() == "" && SameColumns(i.Columns, columns) })
}

// Unusable lists the indexes whose columns name no row.
func Unusable(indexes []Index) string {
	var found []string
	for _, i := range indexes {
		if flaw := i.flaw(); flaw != "" {
			found = append(found, i.Name+" "+flaw)
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
	ctx, source, done := t.Open()
	defer done()
	values := nameOf(table)
	values["index"] = index
	var others int64
	err := source.query(ctx, `SELECT COUNT(*) FROM information_schema.statistics
		WHERE index_name = @index AND table_schema = `+mysqlSchema+` AND table_name <> @name`,
		values, func(rows *sql.Rows) error { return rows.Scan(&others) })
	return err == nil && others == 0
}
