package belay

import (
	"context"
	"time"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// A Finding is a mistake in a set-up, or a check that could not be made. Its fields are
// Check, a name that docs/setup.md explains, Severity, Subject (the faulty part),
// Problem, Fix, and Err if the problem is an error. String returns all of them in one line.
type Finding = doctor.Finding

// Severity is how bad a Finding is.
type Severity = doctor.Severity

// Severities, as Doctor orders its findings.
const (
	SeverityError     = doctor.Error     // operations fail, or a promise does not hold
	SeverityWarning   = doctor.Warning   // it works, and a fault will cost more than it has to
	SeverityNote      = doctor.Note      // it is right if a condition holds, which the finding names
	SeverityUnchecked = doctor.Unchecked // nothing is known, as the check could not be made
)

// doctorTime bounds a Doctor.
const doctorTime = 10 * time.Second

// Doctor looks for mistakes in the set-up: in the tables of models and the settings of the
// database, of Redis, and of RabbitMQ or guard-monitor, in the rights of the service there,
// and in its own settings. It returns nil if all is well.
//
// Doctor changes nothing. To try the service's rights, it acquires a lock in Redis that no
// operation uses, for a millisecond, and publishes an event to RabbitMQ in a transaction that it
// rolls back. It sends no event to guard-monitor. It takes up to 10 s: call it at start-up, or on
// an admin page.
func (b *Belay) Doctor(ctx context.Context, models ...any) []Finding {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	examine := []func(context.Context) []Finding{
		func(ctx context.Context) []Finding { return b.diagnoseDatabase(ctx, models) },
		b.diagnoseLocks,
	}
	if d, ok := b.cfg.Publisher.(doctor.Diagnoser); ok {
		examine = append(examine, d.Diagnose)
	}
	if b.Relay != nil {
		examine = append(examine, b.Relay.Diagnose)
	}
	if b.Webhook != nil {
		examine = append(examine, func(ctx context.Context) []Finding { return b.Webhook.Diagnose(ctx, b.cfg.Service) })
	}
	return doctor.Run(ctx, examine...)
}

func (b *Belay) diagnoseDatabase(ctx context.Context, models []any) []Finding {
	found := append(b.Guard.Diagnose(ctx), dbguard.Diagnose(ctx, b.cfg.DB, models...)...)
	if b.Purger != nil {
		if err := once.Check(ctx, b.cfg.DB); err != nil {
			found = append(found, doctor.DBRequests.Failed("belay_once", err))
		}
	}
	if b.cfg.Calls {
		if err := once.CheckCalls(ctx, b.cfg.DB); err != nil {
			found = append(found, doctor.DBCalls.Failed("belay_pending", err))
		}
	}
	if b.Messages != nil {
		if err := relay.Check(ctx, b.cfg.DB); err != nil {
			found = append(found, doctor.DBMessages.Failed("belay_message", err))
		}
	}
	if b.Guard.Policy() != guard.DBOnly {
		return found
	}
	for _, f := range found {
		if f.Check != doctor.DBModel.Name {
			continue
		}
		switch f.Severity {
		case doctor.Error:
			found = append(found, doctor.GuardDBOnly.Found(f.Subject, "the policy is DBOnly, and the database alone can't guard it: its operations are refused while Redis is away"))
		case doctor.Note:
			only := doctor.GuardDBOnly.Found(f.Subject, "the policy is DBOnly: while Redis is away, its operations go on if the request's key is the only one that they lock, and are refused otherwise").
				Fixed("nothing in that case, else %s", doctor.GuardDBOnly.Fix)
			only.Severity = doctor.Note
			found = append(found, only)
		}
	}
	return found
}

// minTTL is how long a failover of Redis takes with a cluster-node-timeout as documented.
const minTTL = 5 * time.Second

func (b *Belay) diagnoseLocks(ctx context.Context) (found []Finding) {
	if ttl := b.cfg.Lock.TTL; 0 < ttl && ttl < minTTL {
		found = append(found, doctor.LockTTL.Found("lock.Config", "TTL is %v: a pause of a process, or a failover of Redis, takes as long", ttl))
	}
	switch engine := b.Locker.Engine().(type) {
	case doctor.Diagnoser:
		found = append(found, engine.Diagnose(ctx)...)
	case lockengine.Pinger:
		if err := engine.Ping(ctx); err != nil {
			found = append(found, doctor.RedisServer.Failed("the engine", err))
		}
	}
	return found
}
