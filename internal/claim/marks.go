package claim

import (
	"strconv"
	"strings"
)

// marks spells the parameters of a query, ?, as the database does.
func marks(database, query string) string {
	if database != "postgres" {
		return query
	}
	parts := strings.Split(query, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}
