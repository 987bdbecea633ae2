package teststack

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// emptied is how the names of databases begin that no test uses.
const emptied = "emptied_"

// takeDatabase renames an emptied database, or creates one. Of several tests that rename the
// same one, the server lets one succeed.
func takeDatabase(ctx context.Context, conn *pgx.Conn, name string) error {
	rows, err := conn.Query(ctx, "SELECT datname FROM pg_database WHERE datname LIKE $1 ORDER BY random()", emptied+"%")
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	for _, free := range names {
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+free+" RENAME TO "+name); err == nil {
			return nil
		}
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// leaveDatabase empties the database of a test that ended and keeps it for the next. One
// that is not as new after that, or that somebody still reaches, is dropped.
func leaveDatabase(ctx context.Context, conn *pgx.Conn, name, dsn string) error {
	if emptyDatabase(ctx, conn, name, dsn) {
		if _, err := conn.Exec(ctx, "ALTER DATABASE "+name+" RENAME TO "+emptied+randomName()); err == nil {
			return nil
		}
	}
	if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database: %w", err)
	}
	return nil
}

// emptyDatabase reports whether the database is as a new one.
func emptyDatabase(ctx context.Context, server *pgx.Conn, name, dsn string) bool {
	const cut = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = $1"
	if _, err := server.Exec(ctx, cut, name); err != nil {
		return false
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	const reset = `SET lock_timeout = '1s'; DROP SCHEMA public CASCADE;
		CREATE SCHEMA public AUTHORIZATION pg_database_owner; GRANT USAGE ON SCHEMA public TO PUBLIC`
	if _, err := conn.Exec(ctx, reset); err != nil {
		return false
	}
	var left int
	err = conn.QueryRow(ctx, leftovers).Scan(&left)
	return err == nil && left == 0
}

// leftovers counts what a test can leave in a database beside schema public. An object that
// is not part of a new database has an OID of at least 16384.
const leftovers = `
	SELECT
		(SELECT count(*) FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public') +
		(SELECT count(*) FROM pg_class WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_proc WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_type WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_cast WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_extension WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_language WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_foreign_data_wrapper WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_foreign_server WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_event_trigger WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_publication WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_default_acl WHERE oid >= 16384) +
		(SELECT count(*) FROM pg_largeobject_metadata) +
		(SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()) +
		(SELECT count(*) FROM pg_db_role_setting s, pg_database d
			WHERE s.setdatabase = d.oid AND d.datname = current_database()) +
		(SELECT count(*) FROM pg_database
			WHERE datname = current_database() AND (datacl IS NOT NULL OR datconnlimit <> -1))`
