package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/once"
)

// outside is what became of messages and payments beyond the rows.
type outside struct {
	Left    []left       // messages that have not left
	Charges []charge     // the provider's ledger
	Calls   map[fate]int // of the provider, by what became of them
	Open    []openCall   // what once.Open lists
	Replies []reply      // to the test itself, at the end
}

// A left is a message that has not left.
type left struct {
	Topic, Key string
	Body       string
	Reason     string // why it waits, if it is known
}

// An openCall is a payment that once.Open lists.
type openCall struct {
	Key       string
	Tries     int
	Answered  bool
	Undecided bool
}

// A finale takes over when all workers have ended: what they have left is sent, applied and settled.
type finale struct {
	t        *report
	db       *gorm.DB
	guard    *guard.Guard
	broker   string
	queue    string
	provider *provider
}

// end ends what the workers have left: it waits until each message is applied, and each payment settled or
// undecided. What is not by then, the judge names.
func end(t *report, s *server, cluster *teststack.Cluster, broker, queue string, p *provider) (out outside) {
	f := &finale{t: t, broker: broker, queue: queue, provider: p}
	closeAll, err := f.open(s, cluster.Addrs)
	if err != nil {
		t.Errorf("open what takes over from the workers: %v", err)
		return outside{}
	}
	var delivering sync.WaitGroup
	delivering.Go(func() {
		if err := f.deliver(); err != nil {
			t.Errorf("messages that the workers have left: %v", err)
		}
	})
	out.Replies = f.settle()
	delivering.Wait()
	if out.Left, err = f.left(); err != nil {
		t.Errorf("read what has not left: %v", err)
	}
	if out.Open, err = f.listed(); err != nil {
		t.Errorf("list the open payments: %v", err)
	}
	out.Charges, out.Calls = p.charges()
	if err := closeAll(); err != nil {
		t.Errorf("close what took over from the workers: %v", err)
	}
	return out
}

// open makes a Guard on a pool of its own.
func (f *finale) open(s *server, redisAddrs []string) (end func() error, err error) {
	connector, err := s.connector(s.dsn, new(net.Dialer).DialContext)
	if err != nil {
		return nil, err
	}
	pool, db, err := open(s.database, connector, callers)
	if err != nil {
		return nil, err
	}
	f.db = db
	engine, err := redislock.Open(&redis.UniversalOptions{Addrs: redisAddrs}, redislock.Config{})
	if err != nil {
		return nil, err
	}
	locker, err := lock.New(engine, lock.Config{TTL: ttl, Logger: f.log()})
	if err != nil {
		return nil, err
	}
	f.guard, err = guard.New(db, locker, guard.Config{Service: "chaos", Instance: "end", Name: "end", EndTimeout: callEnd, Publisher: nowhere{}, Logger: slog.New(slog.DiscardHandler)})
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return errors.Join(f.guard.Close(ctx), locker.Close(ctx), engine.Close(ctx), pool.Close())
	}, err
}

func (f *finale) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// await waits for a condition, for a minute at most, and reports whether it came true.
func (f *finale) await(cond func() bool) bool {
	for until := time.Now().Add(time.Minute); !cond(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(until) {
			return false
		}
	}
	return true
}

// deliver sends and applies all messages. The workers' processes have ended: nobody sends by the leases
// that those have left who were killed.
func (f *finale) deliver() error {
	if err := f.db.Exec("UPDATE belay_lane SET until_ms = 0").Error; err != nil {
		return err
	}
	if err := f.db.Exec("DELETE FROM belay_relay").Error; err != nil {
		return err
	}
	p, err := startPost("end", f.db, f.guard, f.broker, f.queue, f.log())
	if err != nil {
		return err
	}
	f.await(f.arrived)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return p.close(ctx)
}

// arrived reports whether no message is in the table or in the queue, and each has been applied.
func (f *finale) arrived() bool {
	var stored, parcels, receipts, services, applied int64
	err := errors.Join(
		f.db.Table("belay_message").Count(&stored).Error,
		f.db.Model(&Parcel{}).Count(&parcels).Error,
		f.db.Model(&Receipt{}).Where("sent = ?", true).Count(&receipts).Error,
		f.db.Model(&Service{}).Where("sent = ?", true).Count(&services).Error,
		f.db.Model(&Arrival{}).Distinct("no").Count(&applied).Error,
	)
	if err != nil || stored > 0 || applied < parcels+receipts+services {
		return false
	}
	n, err := waiting(f.broker, f.queue)
	return err == nil && n == 0
}

// left returns the messages that have not left.
func (f *finale) left() (all []left, err error) {
	var rows []struct {
		Topic      string
		MessageKey []byte
		Body       []byte
		Reason     string
	}
	err = f.db.Raw(`SELECT m.topic, m.message_key, m.body, COALESCE(p.reason, '') AS reason
		FROM belay_message m LEFT JOIN belay_parked p ON p.message_id = m.message_id ORDER BY m.id`).Scan(&rows).Error
	for _, r := range rows {
		all = append(all, left{r.Topic, string(r.MessageKey), string(r.Body), r.Reason})
	}
	return all, err
}

// settle asks for all payments that are open, until each is settled or undecided. Then the provider forgets
// all ids, and it asks for all payments that were reserved: nobody may be charged again.
func (f *finale) settle() (replies []reply) {
	f.provider.calmDown()
	f.await(func() bool {
		numbers, err := f.unsettled()
		replies = append(replies, f.ask(numbers)...)
		return err == nil && len(numbers) == 0 && f.provider.idle()
	})
	f.provider.forget()
	numbers, err := f.reserved()
	if err != nil {
		f.t.Errorf("read the payments: %v", err)
	}
	return append(replies, f.ask(numbers)...)
}

// ask asks for payments, for some at a time.
func (f *finale) ask(numbers []int64) []reply {
	replies := make([]reply, len(numbers))
	var asking sync.WaitGroup
	for c := range callers {
		asking.Go(func() {
			for i := c; i < len(numbers); i += callers {
				replies[i] = paying{f.provider.Addr}.pay(context.Background(), f.guard, numbers[i], fmt.Sprintf("end.%d", numbers[i]))
			}
		})
	}
	asking.Wait()
	return replies
}

// reserved returns the numbers of all payments.
func (f *finale) reserved() (numbers []int64, err error) {
	err = f.db.Model(&Payment{}).Distinct("no").Order("no").Pluck("no", &numbers).Error
	return numbers, err
}

// unsettled returns the numbers of the payments that a repeat would settle.
func (f *finale) unsettled() (numbers []int64, err error) {
	all, err := f.reserved()
	if err != nil {
		return nil, err
	}
	list, err := f.listed()
	waits := make(map[string]bool)
	for _, o := range list {
		waits[o.Key] = !o.Undecided
	}
	for _, no := range all {
		if waits[paymentRequest(no).Key()] {
			numbers = append(numbers, no)
		}
	}
	return numbers, err
}

// listed returns what once.Open lists.
func (f *finale) listed() (all []openCall, err error) {
	list, err := once.Open(context.Background(), f.db, 10_000)
	for _, p := range list {
		all = append(all, openCall{p.Key, p.Tries, p.Answered, p.Undecided})
	}
	return all, err
}
