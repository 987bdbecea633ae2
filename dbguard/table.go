package dbguard

import (
	"strings"

	"gorm.io/gorm"
)

// tableOf returns the table of a statement, with its schema if it is named with one. It
// returns "" if the table is not known: gorm may have an alias in its place.
func tableOf(stmt *gorm.Statement) string {
	if name, ok := namedTable(stmt); ok {
		return name
	}
	if s := stmt.Schema; s != nil && s.Table == stmt.Table {
		return s.Table
	}
	return ""
}

// namedTable returns the table of a statement, if that is nothing but a name and an
// alias.
func namedTable(stmt *gorm.Statement) (name string, ok bool) {
	if stmt.TableExpr == nil {
		return stmt.Table, true
	}
	words := strings.Fields(stmt.TableExpr.SQL)
	if n := len(words); n == 1 || n == 2 || n == 3 && strings.EqualFold(words[1], "AS") {
		return unquoted(words[0])
	}
	return "", false
}

// unquoted returns a table's name, which may have a schema, without quotes. It reports
// false if a part of it is no name, such as one that was cut at a space.
func unquoted(word string) (name string, ok bool) {
	parts := strings.Split(word, ".")
	for i, part := range parts {
		for _, quotes := range []string{"``", `""`, "[]"} {
			if len(part) > 2 && part[0] == quotes[0] && part[len(part)-1] == quotes[1] {
				part = part[1 : len(part)-1]
				break
			}
		}
		if part == "" || strings.ContainsAny(part, "(?,`\"[]") {
			return "", false
		}
		parts[i] = part
	}
	return strings.Join(parts[max(0, len(parts)-2):], "."), true
}

// bareName is a table's name without its schema, in lower case.
func bareName(table string) string {
	return strings.ToLower(table[strings.LastIndexByte(table, '.')+1:])
}

// mayBeTable reports whether two names may be those of one table: they are equal, or
// differ only in that one has a schema.
func mayBeTable(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	return strings.Contains(a, ".") != strings.Contains(b, ".") && bareName(a) == bareName(b)
}

// sameTable reports whether two names are those of one table. The schema of a name
// without one is read from the database.
func (t *Tx) sameTable(a, b string) bool {
	switch {
	case strings.EqualFold(a, b):
		return true
	case !mayBeTable(a, b):
		return false
	case strings.Contains(a, "."):
		a, b = b, a
	}
	schema, err := t.schemaOf(a)
	return err == nil && strings.EqualFold(schema+"."+a, b)
}

// schemaOf returns the schema of a table that is named without one, "" if there is no
// such table. Only the transaction remembers it: another one may have another.
func (t *Tx) schemaOf(table string) (string, error) {
	t.mu.Lock()
	known, ok := t.schemas[table]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	query := "SELECT 'main'"
	switch t.dialect.name {
	case "mysql":
		query = "SELECT DATABASE()"
	case "postgres":
		query = `SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.oid = ` + postgresTable
	}
	ctx, cancel := t.judging()
	defer cancel()
	var schema string
	if err := t.quiet(ctx, t.db).Raw(query, nameOf(table)).Scan(&schema).Error; err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.schemas == nil {
		t.schemas = make(map[string]string)
	}
	t.schemas[table] = schema
	return schema, nil
}
