package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testamqp"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/relay"
	"github.com/belaygo/belay/relay/amqprelay"
)

// waitingRows is how many messages wait when BenchmarkRelay begins.
func waitingRows() int {
	if n, err := strconv.Atoi(os.Getenv("BELAY_BENCH_WAITING")); err == nil {
		return n
	}
	return 1000
}

// benchOn runs f on MariaDB and PostgreSQL, for each way out.
func benchOn(b *testing.B, f func(b *testing.B, db *gorm.DB, to relay.Publisher)) {
	b.Helper()
	for _, server := range []string{"mariadb", "postgres"} {
		for _, way := range []string{"handler", "rabbitmq"} {
			b.Run(server+"/"+way, func(b *testing.B) {
				var db *gorm.DB
				if server == "mariadb" {
					db = testdb.OpenMySQL(b, teststack.MySQL(b))
				} else {
					db = testdb.OpenPostgres(b, teststack.Postgres(b))
				}
				pool, err := db.DB()
				if err != nil {
					b.Fatal(err)
				}
				pool.SetMaxIdleConns(32) // two by default: the writers would connect for each message
				f(b, migrated(b, db), wayOut(b, way))
			})
		}
	}
}

func wayOut(b *testing.B, way string) relay.Publisher {
	b.Helper()
	if way == "handler" {
		return publish(func(relay.Message) error { return nil })
	}
	url := teststack.AMQP(b)
	testamqp.OnChannel(b, url, func(ch *amqp.Channel) {
		if _, err := ch.QueueDeclare("sale", true, false, false, false, nil); err != nil {
			b.Fatal(err)
		}
	})
	p, err := amqprelay.New(url, amqprelay.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close(bg) })
	return p
}

// benchRow is the nth message, of one of 1000 keys, with 300 bytes.
func benchRow(n int) message.Row {
	return message.Row{MessageID: fmt.Sprint("bench/", n), Key: fmt.Sprint("item:", n%1000), Topic: "sale", Body: make([]byte, 300)}
}

// fill stores n messages. The database makes those behind the first 50,000, as copies of these
// with other ids: ten million come in minutes then.
func fill(b *testing.B, db *gorm.DB, n int) {
	b.Helper()
	const first, batch = 50_000, 5_000
	for from := 0; from < min(n, first); from += batch {
		var rows []message.Row
		for i := from; i < min(n, first, from+batch); i++ {
			rows = append(rows, benchRow(i))
		}
		store(b, db, rows...)
	}
	if n <= first {
		return
	}
	if err := db.Exec("CREATE TABLE copies AS SELECT * FROM belay_message").Error; err != nil {
		b.Fatal(err)
	}
	for from := first; from < n; from += first {
		copies := fmt.Sprintf(`INSERT INTO belay_message (lane, message_id, key_sum, message_key, topic, headers, body, created_at) `+
			`SELECT lane, CONCAT('%d/', message_id), key_sum, message_key, topic, headers, body, created_at FROM copies ORDER BY id LIMIT %d`, from, min(first, n-from))
		if err := db.Exec(copies).Error; err != nil {
			b.Fatal(err)
		}
	}
}

// counter lets messages through until a number is reached.
type counter struct {
	relay.Publisher
	mu   sync.Mutex
	left int
	done chan struct{}
}

func (c *counter) Publish(ctx context.Context, m relay.Message) error {
	if err := c.Publisher.Publish(ctx, m); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.done)
	}
	return nil
}

// BenchmarkRelay sends messages out of a table in which BELAY_BENCH_WAITING more wait.
func BenchmarkRelay(b *testing.B) {
	benchOn(b, func(b *testing.B, db *gorm.DB, to relay.Publisher) {
		b.Helper()
		if b.N == 1 && waitingRows() > 1_000_000 {
			return // the run of one that go test makes first would fill the table twice
		}
		fill(b, db, waitingRows()+b.N)
		c := &counter{Publisher: to, left: b.N, done: make(chan struct{})}
		b.ResetTimer()
		start(b, db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: c}}})
		<-c.done
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// BenchmarkLatency commits 1,000 messages in each second, one in a transaction, and measures the
// time from before the commit until the message is accepted.
func BenchmarkLatency(b *testing.B) {
	benchOn(b, func(b *testing.B, db *gorm.DB, to relay.Publisher) {
		b.Helper()
		var mu sync.Mutex
		began := make(map[string]time.Time)
		var took []time.Duration
		start(b, db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: publish(func(m relay.Message) error {
			if err := to.Publish(bg, m); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began[m.ID]))
			return nil
		})}}})
		var writers sync.WaitGroup
		work := make(chan message.Row)
		for range 16 {
			writers.Go(func() {
				for r := range work {
					mu.Lock()
					began[r.MessageID] = time.Now()
					mu.Unlock()
					store(b, db, r)
				}
			})
		}
		b.ResetTimer()
		from := time.Now()
		for n := range b.N {
			_ = wait.Sleep(bg, time.Until(from.Add(time.Duration(n)*time.Millisecond)), nil)
			work <- benchRow(n)
		}
		close(work)
		writers.Wait()
		wrote := b.Elapsed()
		testwait.Until(b, "all are accepted", func() bool { mu.Lock(); defer mu.Unlock(); return len(took) >= b.N })
		b.StopTimer()
		slices.Sort(took)
		b.ReportMetric(float64(b.N)/wrote.Seconds(), "commits/s")
		b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
	})
}
