package chaos_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// A cable is the connection of a worker to the database, which can be cut behind what is
// sent.
type cable struct {
	*net.TCPConn

	cutNext atomic.Bool
}

func (c *cable) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	if c.cutNext.CompareAndSwap(true, false) {
		_ = c.Close()
	}
	return n, err
}

// cableKey is where the context of Connect has room for the cable.
type cableKey struct{}

// dial is the dialer of all connectors.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &cable{TCPConn: conn.(*net.TCPConn)}
	if room, ok := ctx.Value(cableKey{}).(**cable); ok {
		*room = c
	}
	return c, nil
}

// A commitLoss is a way to lose the answer to a COMMIT.
type commitLoss string

const (
	notSent    commitLoss = "the connection is cut before the COMMIT"
	cutBehind  commitLoss = "the connection is cut behind the COMMIT, and the server goes on"
	answerLost commitLoss = "the connection is cut before the answer to the COMMIT"
	killedInIt commitLoss = "the server is told to kill the session, and the COMMIT is sent"
)

// commitLosses are drawn from. A COMMIT that was not sent frees the row for the holder
// before, who may write the same.
var commitLosses = []commitLoss{notSent, notSent, cutBehind, answerLost, killedInIt}

// sideLosses are without killedInIt. If the COMMIT is answered first, the end of its session meets the call that has
// the connection next, and no fault in the record would explain that.
var sideLosses = []commitLoss{notSent, cutBehind, answerLost}

// sideLoss is of how many COMMITs aside of the calls one is lost.
const sideLoss = 40

// drawLoss draws what becomes of the COMMIT of a call, or returns "". Most are lost of
// keys whose lock was wiped a moment ago, as that is hardest to resolve.
func (w *worker) drawLoss(d doing) commitLoss {
	if d.side {
		r := draws(w.seed, fmt.Sprintf("%s commit %d", d.do, w.sideCommits.Add(1)))
		if r.IntN(sideLoss) > 0 {
			return ""
		}
		return sideLosses[r.IntN(len(sideLosses))]
	}
	r := draws(w.seed, d.do+" commit")
	loss := commitLosses[r.IntN(len(commitLosses))]
	if r.IntN(4) > 0 || !w.wiped.lately(d.key) {
		return ""
	}
	return loss
}

// lose sends a COMMIT, or does not, and loses its answer.
func (c *watchedConn) lose(ctx context.Context, loss commitLoss) (driver.Result, error) {
	switch loss {
	case killedInIt:
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			c.worker.kill(ctx, c.session)
		}()
		res, err := c.driverConn.ExecContext(ctx, "COMMIT", nil)
		<-killed // or it would hit whoever has the connection next
		return res, err
	case cutBehind:
		c.cable.cutNext.Store(true)
		return c.driverConn.ExecContext(ctx, "COMMIT", nil)
	case answerLost:
		_, _ = c.driverConn.ExecContext(ctx, "COMMIT", nil)
	}
	c.cut(ctx)
	return nil, io.ErrUnexpectedEOF
}

// kill ends a session, unless the connection beside the others leads to another server: there
// its number is a stranger's.
func (w *worker) kill(ctx context.Context, s session) {
	conn, err := w.side.Conn(ctx)
	if err != nil {
		return
	}
	defer conn.Close()
	var own session
	if conn.QueryRowContext(ctx, w.kind.self).Scan(&own.id, &own.server) == nil && own.server == s.server {
		_, _ = conn.ExecContext(ctx, fmt.Sprintf(w.kind.kill, s.id))
	}
}

// A session is one of a server, which has a number: see database.self.
type session struct{ id, server int64 }

// pooled reports whether nobody knows which one it is, as a pooler gives another one to each
// transaction.
func (s session) pooled() bool { return s.server == 1 }

// String is how a fault names it.
func (s session) String() string { return fmt.Sprintf("%d at %d", s.id, s.server) }

// sessionOf asks the server for the session of a connection.
func sessionOf(ctx context.Context, c driver.QueryerContext, query string) (session, error) {
	rows, err := c.QueryContext(ctx, query, nil)
	if err != nil {
		return session{}, err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		return session{}, err
	}
	var id, server sql.NullInt64
	err = errors.Join(id.Scan(row[0]), server.Scan(row[1]))
	return session{id.Int64, server.Int64}, err
}
