// Package pgxpipe makes pipelines of connections of pgx. Only programs that import guard/pgxguard link it.
package pgxpipe

import (
	"cmp"
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay/internal/dbtx/pipeline"
)

// Of returns the pipeline of a connection of stdlib. One that is wrapped has none: those who
// have wrapped it are to see every statement.
func Of(dc driver.Conn) pipeline.Pipeline {
	if c, ok := dc.(*stdlib.Conn); ok {
		return pipe{c.Conn()}
	}
	return nil
}

// A pipe is a connection as a pipeline.
type pipe struct{ conn *pgx.Conn }

// Send implements pipeline.Pipeline.
func (p pipe) Send(ctx context.Context, all []pipeline.Statement) (done []pipeline.Result, err error) {
	var batch pgx.Batch
	for _, s := range all {
		batch.Queue(s.Query, s.Args...)
	}
	results := p.conn.SendBatch(ctx, &batch)
	defer func() { err = cmp.Or(err, results.Close()) }()
	for range all {
		r, err := resultOf(results.Query())
		if err != nil {
			return done, err
		}
		done = append(done, r)
	}
	return done, nil
}

func resultOf(rows pgx.Rows, err error) (r pipeline.Result, _ error) {
	if err != nil {
		return r, err
	}
	if rows.Next() {
		if row := rows.RawValues(); len(row) > 0 {
			r.Text = string(row[0])
		}
	}
	rows.Close()
	r.Rows = rows.CommandTag().RowsAffected()
	return r, rows.Err()
}

// InTransaction implements pipeline.Pipeline.
func (p pipe) InTransaction() bool {
	return p.conn.PgConn().TxStatus() == 'T' && !p.conn.IsClosed()
}
