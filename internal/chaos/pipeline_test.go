package chaos_test

import (
	"context"
	"database/sql/driver"

	"github.com/belaygo/belay/internal/dbtx/pipeline"
)

func init() {
	var of func(driver.Conn) pipeline.Pipeline
	of = pipeline.Register(func(dc driver.Conn) pipeline.Pipeline {
		c, ok := dc.(*watchedConn)
		if !ok {
			return of(dc)
		}
		if p := of(c.driverConn); p != nil {
			return watchedPipe{p, c}
		}
		return nil
	})
}

// together is the result of a BEGIN that is sent with other statements.
const together = "together"

// A watchedPipe notes what is sent together, as its connection notes what is sent alone.
type watchedPipe struct {
	pipeline.Pipeline

	conn *watchedConn
}

func (p watchedPipe) Send(ctx context.Context, all []pipeline.Statement) ([]pipeline.Result, error) {
	begins, how := p.conn.begins(ctx, all[0].Query), ""
	if len(all) > 1 {
		how = together
	}
	if begins { // it is noted before the answer, as the others may wait
		p.conn.begun(ctx, how)
	}
	done, err := p.Pipeline.Send(ctx, all)
	for i, s := range all[:min(len(all), len(done)+1)] {
		var failed error
		if i == len(done) {
			failed = err
		}
		if i > 0 || !begins || failed != nil {
			p.conn.note(ctx, s.Query, failed)
		}
	}
	return done, err
}
