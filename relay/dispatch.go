package relay

import (
	"errors"
	"slices"
)

// dispatch gives the rows of idle keys to couriers.
func (l *loop) dispatch() {
	if l.courier.closing.Err() != nil {
		return
	}
	for _, q := range l.window.queues {
		if !q.ready() || !l.lanes.has(q.lane) || l.lanes.leaving[q.lane].Load() || l.suspended(q.waiting[0].msg.Topic) > 0 {
			continue
		}
		route, _ := routeOf(l.courier.routes, q.waiting[0].msg.Topic)
		if l.busy[route.Topic] == l.cfg.limits.couriers { // a slow destination leaves the others theirs
			continue
		}
		rows := l.batch(q.waiting, route)
		q.waiting, q.busy, q.route = q.waiting[len(rows):], true, route.Topic
		l.couriers++
		l.busy[route.Topic]++
		term := l.lanes.terms[q.lane].Load()
		go l.courier.carry(l.ctx, rows, term)
	}
}

// batch returns the first rows that go one way.
func (l *loop) batch(rows []row, way Route) []row {
	n := slices.IndexFunc(rows, func(r row) bool {
		route, _ := routeOf(l.courier.routes, r.msg.Topic)
		return route.Topic != way.Topic
	})
	if n < 0 {
		return rows
	}
	return rows[:n:n]
}

// collect handles the results that are there.
func (l *loop) collect() {
	for {
		select {
		case r := <-l.results:
			l.handle(r)
		default:
			return
		}
	}
}

func (l *loop) handle(r result) {
	q := l.window.queues[r.row.sum]
	rest := r.rest
	if r.tried {
		switch {
		case r.err == nil:
			l.metrics.sent.Inc()
			l.sent = append(l.sent, r.row)
			l.resume(r.row.msg.Topic)
		case errors.Is(r.err, ErrUnavailable) && !l.atFault(&r.row):
			l.suspend(r.row.msg.Topic, r.err)
			rest = append([]row{r.row}, rest...)
		case l.ctx.Err() != nil: // Close has ended the call
			rest = append([]row{r.row}, rest...)
		default:
			l.failed = append(l.failed, l.judge(r.row, r.err))
			q.failed = true
		}
	}
	if r.last {
		l.end(q, rest)
	}
	if r.old {
		l.window.drop(q)
	}
}

// end puts the rest of a courier's rows before those that were read since.
func (l *loop) end(q *queue, rest []row) {
	l.couriers--
	l.busy[q.route]--
	q.busy = false
	q.waiting = append(slices.Clip(rest), q.waiting...)
	if q.stale {
		q.stale = false
		l.lanes.stale[q.lane]--
		l.window.drop(q)
		return
	}
	l.window.forget(q)
}
