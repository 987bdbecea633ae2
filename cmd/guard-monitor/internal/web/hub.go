package web

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// news is what a live connection sends: the newest ids, and no content.
type news struct {
	store.Marks
	Letters int  `json:"letters"`
	Broker  bool `json:"broker"`
	Store   bool `json:"store"`
}

// hub reads the news from the store, once for all connections. A slow connection
// receives only the latest news, so no connection needs a queue.
type hub struct {
	cfg   Config
	slots chan struct{}
	done  chan struct{} // closed when run ends

	mu      sync.Mutex
	latest  news
	changed chan struct{} // closed at the next change
}

func newHub(cfg Config) *hub {
	return &hub{
		cfg: cfg, slots: make(chan struct{}, cfg.MaxLive),
		done: make(chan struct{}), changed: make(chan struct{}),
	}
}

func (b *hub) run(ctx context.Context) error {
	defer close(b.done)
	tick := time.NewTicker(b.cfg.Every)
	defer tick.Stop()
	for {
		if len(b.slots) > 0 {
			b.look(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (b *hub) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	marks, err := b.cfg.Store.Marks(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.latest
	if err == nil {
		seen.Marks = marks
	}
	in := b.cfg.intake()
	seen.Broker, seen.Store = in.Connected(), in.Storing && err == nil
	seen.Letters, _ = b.cfg.deadLetters()
	if seen != b.latest {
		b.latest = seen
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

func (b *hub) now() (news, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.latest, b.changed
}
