package belay

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/instance"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
	"github.com/belaygo/belay/notify/webhook"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// Config says what a Belay is made of. Service, one of DB and SQL, and one of Redis,
// RedisOptions and Engine are required.
type Config struct {
	// Service is the name under which lock failures are reported.
	Service string
	// Name distinguishes several Belays of one process in metrics: it is the label name of all
	// their parts. Lock.Name, Guard.Name and Once.Name come before it. Defaults to the name of
	// each part, such as "guard" and "outbox".
	Name string
	// DB is the database of the operations. It stays the caller's, to be closed after
	// the Belay.
	DB *gorm.DB
	// SQL is the database of the operations of a program that does not use GORM, in place of
	// DB. It stays the caller's, to be closed after the Belay. See dbguard.Open and guard.SQL.
	SQL *sql.DB
	// Family is the kind of the database server, if the server shows another one: see
	// guard.Config.Family, which comes before it. Defaults to what the server shows.
	Family guard.Family
	// Redis is the URL of what keeps the locks: redis://host:6379 for a single server,
	// redis+cluster://host:6379,host:6379, or redis+sentinel://host:26379/name. See
	// redislock.ParseURL.
	Redis string
	// RedisOptions are in place of Redis, for what a URL can't say, as a Dialer: see
	// redislock.Open.
	RedisOptions *redis.UniversalOptions
	// Engine keeps the locks in place of Redis. It stays the caller's to close. Where it is a
	// switchlock.Engine, heartbeats report which engine keeps the locks.
	Engine lockengine.Engine
	// AMQP is the URL of the RabbitMQ to which lock failures are published. They wait
	// in the table belay_outbox of DB until it has them; Open creates the table if it
	// is missing.
	AMQP string
	// Monitor is the address of a guard-monitor to which lock failures are published in
	// place of AMQP, without a broker, such as https://monitor.example.com:9440. They
	// wait in belay_outbox likewise. See webhook.New.
	Monitor string
	// MonitorToken is required with Monitor: the token of an entry of its setting ingest.
	MonitorToken string
	// Publisher takes the lock failures in place of AMQP and Monitor. It stays the
	// caller's to close. Without all three, they are logged at the level error.
	Publisher notify.Publisher
	// Once purges the requests of guard.For and guard.Once when they are old; Open creates
	// their tables if they are missing. The zero PurgerConfig will do. Services that share a
	// database share the requests, too: give all the same Keep. Defaults to nil: neither.
	Once *once.PurgerConfig
	// Messages are the ways out of the messages that operations send by guard.Send, by topic;
	// Open creates their tables if they are missing. They are sent while the Belay is open, each
	// by one of the processes that have routes. Defaults to nil: other processes send them, and
	// relay.Migrate creates the tables.
	Messages []relay.Route
	// Calls is set by a service that uses guard.Call: Open creates the table belay_pending if it is
	// missing, Doctor checks it, each undecided request is an event, and heartbeats count what is
	// pending. Set Once, too.
	Calls bool
	// Logger is for what can't be returned. Defaults to slog.Default().
	Logger *slog.Logger
	// Lock and Guard are settings beyond these. Their fields Service, Publisher and
	// Logger, and the Logger of Once, are set by Open.
	Lock  lock.Config
	Guard guard.Config
}

func (c Config) validate() error {
	switch {
	case c.Service == "":
		return errors.New("belay: Config.Service is empty: set it to the name under which lock failures are to be reported")
	case count(c.DB != nil, c.SQL != nil) != 1:
		return errors.New("belay: Config needs exactly one of DB and SQL: set DB to a *gorm.DB, or SQL to a *sql.DB")
	case count(c.Redis != "", c.RedisOptions != nil, c.Engine != nil) != 1:
		return errors.New("belay: Config needs exactly one of Redis, RedisOptions and Engine: set Redis to a URL such as redis://127.0.0.1:6379, or Engine to one that needs no Redis, such as sqllock")
	case count(c.AMQP != "", c.Monitor != "", c.Publisher != nil) > 1:
		return errors.New("belay: Config has more than one of AMQP, Monitor and Publisher: keep the one that is to get the events")
	case c.Monitor != "" && c.MonitorToken == "":
		return errors.New("belay: Config.MonitorToken is empty: set it to the token of this service in guard-monitor's setting ingest")
	case c.Monitor == "" && c.MonitorToken != "":
		return errors.New("belay: Config has a MonitorToken without Monitor: set Monitor to the address of guard-monitor, or leave out both")
	}
	return nil
}

// count returns how many are given.
func count(all ...bool) (n int) {
	for _, given := range all {
		if given {
			n++
		}
	}
	return n
}

// A Belay is a Guard with the parts that it was made of. Parts that its Config did not
// ask for are nil. It is safe for concurrent use.
type Belay struct {
	Guard   *guard.Guard
	Locker  *lock.Locker
	Redis   redislock.Engine
	Outbox  *outbox.Outbox
	Relay   rabbitmq.Publisher // behind the Outbox, with Config.AMQP
	Webhook webhook.Publisher  // behind the Outbox, with Config.Monitor
	Purger  *once.Purger
	// Messages sends what operations have sent, with Config.Messages.
	Messages *relay.Relay

	cfg     Config                        // with what Open has filled in
	closers []func(context.Context) error // in this order
}

// Open makes a Belay. It does not wait for Redis, RabbitMQ or guard-monitor, but for the database if
// it has to look for the outbox's table, or to ask Config.SQL what it is. ctx bounds Open only.
func Open(ctx context.Context, cfg Config) (_ *Belay, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Guard.Instance == "" { // events and heartbeats have the same
		cfg.Guard.Instance = instance.Name()
	}
	if cfg.SQL != nil {
		if cfg.DB, err = dbguard.Open(ctx, cfg.SQL); err != nil {
			return nil, err
		}
	}
	cfg.Guard.Family = cmp.Or(cfg.Guard.Family, cfg.Family)
	cfg.Lock.Name, cfg.Guard.Name = cmp.Or(cfg.Lock.Name, cfg.Name), cmp.Or(cfg.Guard.Name, cfg.Name)
	b := new(Belay)
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close(context.WithoutCancel(ctx)))
		}
	}()
	if err := b.openLocker(cfg); err != nil {
		return nil, err
	}
	if err := b.openPublisher(ctx, &cfg); err != nil {
		return nil, err
	}
	if err := b.openPurger(ctx, cfg); err != nil {
		return nil, err
	}
	if err := b.openMessages(ctx, cfg); err != nil {
		return nil, err
	}
	g := cfg.Guard
	g.Service, g.Publisher, g.Logger = cfg.Service, cfg.Publisher, cfg.Logger
	g.Calls = g.Calls || cfg.Calls
	b.Guard, err = guard.New(cfg.DB, b.Locker, g)
	if err != nil {
		return nil, err
	}
	b.closeFirst(b.Guard.Close)
	b.cfg = cfg
	return b, nil
}

func (b *Belay) openLocker(cfg Config) (err error) {
	engine := cfg.Engine
	if engine == nil {
		b.Redis, err = openRedis(cfg)
		if err != nil {
			return err
		}
		b.closeFirst(b.Redis.Close)
		engine = b.Redis
	}
	cfg.Lock.Logger = cfg.Logger
	b.Locker, err = lock.New(engine, cfg.Lock)
	if err != nil {
		return err
	}
	b.closeFirst(b.Locker.Close)
	return nil
}

func openRedis(cfg Config) (redislock.Engine, error) {
	opts := cfg.RedisOptions
	if opts == nil {
		var err error
		if opts, err = redislock.ParseURL(cfg.Redis); err != nil {
			return nil, fmt.Errorf("belay: Config.Redis: %w", err)
		}
	}
	return redislock.Open(opts, redislock.Config{Name: cfg.Name, Logger: cfg.Logger})
}

// openRelay opens what takes events out of the outbox, nil if cfg has none.
func (b *Belay) openRelay(cfg *Config) (_ notify.Publisher, err error) {
	switch {
	case cfg.AMQP != "":
		b.Relay, err = rabbitmq.New(cfg.AMQP, rabbitmq.Config{Name: cfg.Name, Logger: cfg.Logger})
		if err != nil {
			return nil, fmt.Errorf("belay: Config.AMQP: %w", err)
		}
		b.closeFirst(b.Relay.Close)
		return b.Relay, nil
	case cfg.Monitor != "":
		b.Webhook, err = webhook.New(cfg.Monitor, webhook.Config{Name: cfg.Name, Token: cfg.MonitorToken, Logger: cfg.Logger})
		if err != nil {
			return nil, fmt.Errorf("belay: Config.Monitor: %w", err)
		}
		b.closeFirst(b.Webhook.Close)
		return b.Webhook, nil
	}
	return nil, nil
}

// openPublisher puts an outbox before RabbitMQ or guard-monitor if cfg has one of them.
func (b *Belay) openPublisher(ctx context.Context, cfg *Config) error {
	to, err := b.openRelay(cfg)
	if to == nil || err != nil {
		return err
	}
	if !catalogue.Has(ctx, cfg.DB, "belay_outbox") { // to create needs rights that to use it does not
		if err := outbox.Migrate(ctx, cfg.DB); err != nil {
			return err
		}
	}
	b.Outbox, err = outbox.New(cfg.DB, outbox.Config{
		Name: cfg.Name, Service: cfg.Service, Instance: cfg.Guard.Instance, Relay: to, Logger: cfg.Logger,
		Switch: switchOf(cfg.Engine), Messages: messagesOf(*cfg), Calls: callsOf(*cfg),
	})
	if err != nil {
		return err
	}
	b.closeFirst(b.Outbox.Close)
	cfg.Publisher = b.Outbox
	return nil
}

func (b *Belay) openPurger(ctx context.Context, cfg Config) (err error) {
	if cfg.Calls && !catalogue.Has(ctx, cfg.DB, "belay_pending") {
		if err := once.MigrateCalls(ctx, cfg.DB); err != nil {
			return err
		}
	}
	if cfg.Once == nil {
		return nil
	}
	if !catalogue.Has(ctx, cfg.DB, "belay_answer") { // the second of the two
		if err := once.Migrate(ctx, cfg.DB); err != nil {
			return err
		}
	}
	purge := *cfg.Once
	purge.Name, purge.Logger = cmp.Or(purge.Name, cfg.Name), cfg.Logger
	b.Purger, err = once.NewPurger(cfg.DB, purge)
	if err != nil {
		return err
	}
	b.closeFirst(b.Purger.Close)
	return nil
}

func (b *Belay) openMessages(ctx context.Context, cfg Config) (err error) {
	if len(cfg.Messages) == 0 {
		return nil
	}
	if !catalogue.Has(ctx, cfg.DB, "belay_parked") { // the last of its tables
		if err := relay.Migrate(ctx, cfg.DB); err != nil {
			return err
		}
	}
	b.Messages, err = relay.New(cfg.DB, relay.Config{
		Name: cfg.Name, Routes: cfg.Messages, Logger: cfg.Logger,
		Service: cfg.Service, Instance: cfg.Guard.Instance, Publisher: cfg.Publisher,
	})
	if err != nil {
		return err
	}
	b.closeFirst(b.Messages.Close)
	return nil
}

// closeFirst has part closed before those that were opened earlier.
func (b *Belay) closeFirst(part func(context.Context) error) {
	b.closers = slices.Insert(b.closers, 0, part)
}

// Close refuses new operations, waits for those that run, and closes what Open has
// opened, each part before those that it uses. When ctx ends, it no longer waits: what
// is then in the outbox stays there for the next relay. While the broker or the monitor is
// away, Close waits until ctx ends, or for 10 seconds if ctx has no deadline. It may be
// called again.
func (b *Belay) Close(ctx context.Context) error {
	var errs []error
	for _, part := range b.closers {
		if err := part(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("belay: close: %w", err)
	}
	return nil
}

// Collectors returns the metrics of all parts, to be registered.
func (b *Belay) Collectors() []prometheus.Collector {
	all := []prometheus.Collector{b.Guard, b.Locker}
	if b.Redis != nil {
		all = append(all, b.Redis)
	}
	if b.Outbox != nil {
		all = append(all, b.Outbox)
	}
	if b.Relay != nil {
		all = append(all, b.Relay)
	}
	if b.Webhook != nil {
		all = append(all, b.Webhook)
	}
	if b.Purger != nil {
		all = append(all, b.Purger)
	}
	if b.Messages != nil {
		all = append(all, b.Messages)
	}
	return all
}
