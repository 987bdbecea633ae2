package dialect

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/internal/sqlerr"
)

// IsRefused reports that a member of a MySQL group refused a COMMIT. Either another
// member's transaction came first, or this member has left the group and waits no longer,
// in which case the others may have the commit in their order. See Dialect.StillMember.
func IsRefused(err error) bool { return sqlerr.IsMySQL(err, erRolledBack) }

// groupView returns the view of the group that the server is a member of; none if it is in
// no group, or the user may not know.
func groupView(ctx context.Context, c *sql.Conn) (view string, err error) {
	err = c.QueryRowContext(ctx, `SELECT view_id FROM performance_schema.replication_group_member_stats
		WHERE member_id = @@server_uuid`).Scan(&view)
	if errors.Is(err, sql.ErrNoRows) || sqlerr.IsMySQL(err, erTableDenied) {
		return "", nil
	}
	return view, err
}

// stillMember reports whether the server has been a member of its group all the time since
// the session was read. One that has left it and come back has another view, and so have
// all when another comes or goes.
func stillMember(ctx context.Context, c *sql.Conn, s Session) (still bool, err error) {
	if s.View == "" {
		return false, nil
	}
	err = c.QueryRowContext(ctx, `SELECT COUNT(*) FROM performance_schema.replication_group_members AS m
		JOIN performance_schema.replication_group_member_stats AS s ON s.member_id = m.member_id
		WHERE m.member_id = @@server_uuid AND m.member_state = 'ONLINE' AND s.view_id = ?`, s.View).Scan(&still)
	return still, err
}
