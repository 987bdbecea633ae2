package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

// An Outbox is a notify.Publisher that stores events before it forwards them.
// It is safe for concurrent use. It is a prometheus.Collector that queries the database
// for the backlog, for a second at most.
type Outbox struct {
	*metrics

	table  table
	writer *writer
	relay  *relay // nil without Config.Relay
	drain  time.Duration
}

var (
	_ notify.Publisher     = (*Outbox)(nil)
	_ prometheus.Collector = (*Outbox)(nil)
)

// New returns an Outbox on the table belay_outbox of db, which [Migrate]
// creates, and starts its relay. It does not wait for the database. The caller
// closes the Outbox before the Relay and db.
func New(db *gorm.DB, cfg Config) (*Outbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t, err := openTable(db)
	if err != nil {
		return nil, err
	}
	o := &Outbox{table: t, metrics: newMetrics(cfg.Name, t), drain: cfg.limits.drain}
	wake := func() {}
	if cfg.Relay != nil {
		o.relay = startRelay(cfg, t, o.metrics)
		wake = o.relay.pacer.wake
	}
	o.writer = newWriter(cfg, t, o.metrics, wake)
	return o, nil
}

// Ping returns an error if the table cannot be read.
func (o *Outbox) Ping(ctx context.Context) error {
	if err := o.table.check(ctx); err != nil {
		return fmt.Errorf("outbox: read table: %w", err)
	}
	return nil
}

// Publish stores ev and returns nil once it is in the table, or if an event of its id
// was there before. If the table cannot be written, Publish returns nil once the Relay
// has the event. It ignores the end of ctx, because the context of a failed operation
// has often ended, and takes at most 3 seconds. An error means that the event may be
// lost; it was logged whole.
//
// Events that come at the same time share an INSERT. Each keeps its id and its row.
func (o *Outbox) Publish(ctx context.Context, ev notify.Event) error {
	return o.writer.publish(ctx, ev)
}

// Close ends the outbox: it refuses further events, and the relay forwards the stored
// ones and stops. Rows that another relay has leased are left to that one, or to the
// next process if that one has died. If ctx ends first, the rest stays stored for the
// next process and Close returns an error that matches ctx.Err(), and the error of the
// relay's last pause if no event was published since. If ctx has no deadline, Close ends
// after 10 seconds. A second call returns an error.
func (o *Outbox) Close(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		limited, cancel := context.WithTimeout(ctx, o.drain)
		defer cancel()
		ctx = limited
	}
	finished := o.writer.close(ctx)
	if o.relay == nil {
		return finished
	}
	if err := o.relay.close(ctx); err != nil {
		return err
	}
	return finished
}
