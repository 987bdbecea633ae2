package once

import "github.com/belaygo/belay/internal/sqldb"

// PostgresSchema is that of PostgreSQL.
var PostgresSchema = sqldb.Dialect{Name: "postgres"}.Schema(schemas)
