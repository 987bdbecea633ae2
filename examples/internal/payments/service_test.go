package payments_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// Short times: a lease of a call is the time of one and four times endTimeout.
const (
	timeout     = 500 * time.Millisecond
	until       = 6 * time.Second
	endTimeout  = 500 * time.Millisecond
	leaseOfLock = 1500 * time.Millisecond
	closing     = 10 * time.Second
)

// Item is what is sold.
type Item struct {
	ID      int64
	Stock   int
	Version dbguard.Version
}

// The states of a payment.
const (
	reservedOnly = "reserved"
	paid         = "paid"
	refused      = "refused"
)

// Payment is a row of the service.
type Payment struct {
	No      string `gorm:"primaryKey;size:64"`
	Item    int64
	Cents   int
	State   string `gorm:"size:16"`
	Receipt string `gorm:"size:64"`
}

// A service sells items for money.
type service struct {
	guard    *guard.Guard
	provider string // its address
	wrong    string // a role
}

// request is the request of a payment.
func request(no string, cents int) once.Request {
	return once.Request{Operation: "pay", Scope: once.Anyone, ID: no, Print: once.PrintOf(1, []byte(no), fmt.Append(nil, cents))}
}

// call holds an item, charges, and then ends the sale or gives the item back.
func (s *service) call() guard.Call[Payment, string, string] {
	until := until
	if s.wrong == roleLongUntil {
		until = time.Hour
	}
	return guard.Call[Payment, string, string]{
		Name: "pay",
		Reserve: func(ctx context.Context, tx *gorm.DB, p Payment) error {
			p.State = reservedOnly
			take := guard.Update(&Item{ID: p.Item}, func(i *Item) error { i.Stock--; return nil })
			return guard.All(guard.Insert(&p), take).Run(ctx, tx)
		},
		Do: s.charge,
		Settle: func(ctx context.Context, tx *gorm.DB, p Payment, o guard.Outcome[string]) (string, error) {
			state := map[bool]string{false: paid, true: refused}[o.Refused]
			done := tx.Model(&Payment{}).Where("no = ? AND state = ?", p.No, reservedOnly).Updates(map[string]any{"state": state, "receipt": o.Value})
			if done.Error != nil || done.RowsAffected != 1 {
				return "", fmt.Errorf("%d rows of payment %s are to be settled: %w", done.RowsAffected, p.No, done.Error)
			}
			if !o.Refused {
				return state, nil
			}
			return state, guard.Update(&Item{ID: p.Item}, func(i *Item) error { i.Stock++; return nil }).Run(ctx, tx)
		},
		Timeout: timeout,
		Until:   until,
	}
}

// charge calls the provider. Only a 402 is its last word.
func (s *service) charge(ctx context.Context, id string, p Payment) (string, error) {
	if s.wrong == roleNewIDs {
		id = fmt.Sprint(id, time.Now().UnixNano())
	}
	form := url.Values{"no": {p.No}, "cents": {strconv.Itoa(p.Cents)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.provider+"/charges", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", id)
	resp, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusOK:
		return string(body), nil
	case resp.StatusCode == http.StatusPaymentRequired:
		return "", guard.Refuse("declined")
	}
	return "", errors.New(resp.Status)
}

// ServeHTTP serves a payment: 200 settled, 409 busy, 503 repeat, 500 undecided.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	item, _ := strconv.ParseInt(r.FormValue("item"), 10, 64)
	cents, _ := strconv.Atoi(r.FormValue("cents"))
	p := Payment{No: r.FormValue("no"), Item: item, Cents: cents}
	state, err := s.pay(r.Context(), p)
	pending, _ := errors.AsType[*guard.PendingError](err)
	switch {
	case err == nil:
		fmt.Fprint(w, state)
	case pending != nil && pending.Undecided:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case errors.Is(err, guard.ErrBusy):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (s *service) pay(ctx context.Context, p Payment) (string, error) {
	if s.wrong == roleByHand {
		return s.payByHand(ctx, p)
	}
	key := fmt.Sprintf("item:%d", p.Item)
	a, err := s.call().Run(ctx, s.guard, request(p.No, p.Cents), p, guard.Also(key, &Item{ID: p.Item}), guard.Wait(time.Second))
	return a.Value, err
}

// serve runs a service until ctx ends.
func serve(ctx context.Context, role string) error {
	dsn := os.Getenv(childDSN)
	d := mysql.Open(dsn)
	if testdb.IsPostgres(dsn) {
		d = postgres.Open(dsn)
	}
	db, err := gorm.Open(d, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return err
	}
	if pool, err := db.DB(); err == nil {
		defer pool.Close()
		pool.SetMaxOpenConns(16)
	}
	b, err := belay.Open(ctx, belay.Config{
		Service: "shop", DB: db, Redis: "redis+cluster://" + os.Getenv(childRedis), Once: new(once.PurgerConfig), Calls: true,
		Lock: lock.Config{TTL: leaseOfLock}, Guard: guard.Config{EndTimeout: endTimeout},
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &service{guard: b.Guard, provider: os.Getenv(childProvider), wrong: role}}
	fmt.Fprintln(os.Stdout, "serves", listener.Addr())
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return b.Close(ctx)
}
