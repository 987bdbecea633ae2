package claim

import (
	"strconv"
	"strings"
)

// marks spells the parameters of a query, ?, and the quotes of its names, ", as the database
// does. A name is quoted that is a word of SQL to some: MariaDB's mode ORACLE knows BODY.
func marks(database, query string) string {
	if database == "mysql" {
		return strings.ReplaceAll(query, `"`, "`")
	}
	if database != "postgres" {
		return query
	}
	parts := strings.Split(query, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}
