package lock

import (
	"context"
	"fmt"
)

// A Prober is an engine that can check whether it grants locks. One that may answer
// Inspect while it rejects Acquire, as a server does that is out of memory, should
// be a Prober: under guard.DBOnly an outage ends when the probe succeeds.
type Prober interface {
	// Probe returns nil if a lock could be acquired now in the place where the lock
	// on key is kept. It neither takes nor awaits that lock, whoever holds it, and
	// what it writes expires at once. Like Acquire, it is one attempt.
	Probe(ctx context.Context, key string) error
}

// Probe checks whether the engine grants locks in the place of key: see Prober. An
// engine that is no Prober is asked who holds key.
func (l *Locker) Probe(ctx context.Context, key string) error {
	p, ok := l.engine.(Prober)
	if !ok {
		_, err := l.Inspect(ctx, key)
		return err
	}
	if err := p.Probe(ctx, key); err != nil {
		return fmt.Errorf("probe lock %q: %w", key, err)
	}
	return nil
}
