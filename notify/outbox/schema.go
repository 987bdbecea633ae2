package outbox

import (
	_ "embed"
)

var (
	//go:embed schema/mysql.sql
	mysqlSchema string
	//go:embed schema/postgres.sql
	postgresSchema string
	//go:embed schema/sqlite.sql
	sqliteSchema string
)

var schemas = map[string]string{"mysql": mysqlSchema, "postgres": postgresSchema, "sqlite": sqliteSchema}
