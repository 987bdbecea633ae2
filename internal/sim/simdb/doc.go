// Package simdb is a simulated database server for tests: a driver of database/sql with
// rows, versions and locks in memory, which answers as MariaDB 10.11 or PostgreSQL 15 does.
//
//	sdb := simdb.New(simdb.MariaDB, simdb.Knobs{})
//	sdb.Exec("CREATE TABLE orders (id BIGINT AUTO_INCREMENT, no VARCHAR(64) NOT NULL, PRIMARY KEY (id), UNIQUE KEY orders_no (no))")
//	pool := sql.OpenDB(sdb.Connector("process 1", gate))
//	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool}))
//
// Each call that would go over the network passes the [Gate] first, which decides when it
// runs and what becomes of it. A database knows the statements that Belay and gorm send. Any
// other one is reported to Knobs.Unknown: an answer that was guessed would prove nothing.
package simdb
