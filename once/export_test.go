package once

// PostgresSchema is that of PostgreSQL.
var PostgresSchema = postgresSchema
