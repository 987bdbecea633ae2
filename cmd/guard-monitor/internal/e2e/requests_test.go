package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/httpguard"
)

// serve serves requests that take one of a stock by an update which nothing but the request
// keeps from being made again. It answers with an id of its own making. With hold it stands
// in the transaction; with ?fail it changes nothing in the end, and says which key it has.
func (i *instance) serve(g *guard.Guard) error {
	guarded, err := httpguard.New(g, httpguard.Config{
		Principal: func(*http.Request) (string, error) { return "anyone", nil },
		Print:     func(*http.Request, []byte) [][]byte { return nil },
		Operation: func(*http.Request) string { return "take" },
	})
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	say(report{State: "serves", Result: l.Addr().String()})
	server := &http.Server{Handler: guarded(http.HandlerFunc(i.take)), ReadHeaderTimeout: 5 * time.Second}
	return server.Serve(l)
}

func (i *instance) take(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if request, ok := guard.Request(ctx); ok && r.URL.Query().Has("fail") {
		http.Error(w, request.Key(), http.StatusTeapot)
		return
	}
	err := guard.Tx(ctx).Exec("UPDATE stocks SET `left` = `left` - 1 WHERE id = ?", i.stock).Error
	if err == nil {
		err = i.stand(ctx)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, i.name+" "+uuid.NewString())
}

// send sends the request to an instance. It returns 0 if there is no answer.
func (s *stage) send(addr, query string) (status int, body string) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/"+query, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", `"g"`)
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	all, _ := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(all))
}

// requestsAreServedOnce sends one request 100 times to three instances. The first of them
// stands in its transaction when the master dies that has the request's lock, and is killed
// then.
func requestsAreServedOnce(t *testing.T, s *stage) string {
	const stock, repeats = 7, 99
	if err := s.db.Create(&Stock{ID: stock, Left: 10}).Error; err != nil {
		t.Fatal(err)
	}
	serve := func(name string, args ...string) (p *process, addr string) {
		p = s.start(name, append(args, "-do", "serve", "-stock", fmt.Sprint(stock))...)
		return p, p.await("serves")
	}
	a, addrA := serve("A", "-hold")
	_, addrB := serve("B")
	_, addrC := serve("C")

	status, key := s.send(addrA, "?fail")
	if status != http.StatusTeapot {
		t.Fatalf("the request is answered by %d, %s", status, key)
	}
	at := s.cluster.shardOf(key)
	s.cluster.detach(at)
	first := make(chan int)
	go func() {
		status, _ := s.send(addrA, "")
		first <- status
	}()
	a.await("stands")
	s.cluster.failOver(at)

	answers := make(chan string)
	busy := make(chan struct{}, repeats)
	for n := range repeats {
		addr := []string{addrB, addrC}[n%2]
		go func() {
			for told := false; ; told = true {
				switch status, body := s.send(addr, ""); status {
				case http.StatusCreated:
					answers <- body
					return
				case http.StatusConflict, http.StatusServiceUnavailable:
					if !told {
						busy <- struct{}{}
					}
				default:
					answers <- fmt.Sprintf("%d %s", status, body)
					return
				}
			}
		}()
	}
	for range repeats { // nobody gets through while A stands, though its lock is lost
		<-busy
	}
	a.Signal(syscall.SIGKILL)
	if status := <-first; status != 0 {
		t.Errorf("the killed instance answers %d", status)
	}
	all := make(map[string]int)
	for range repeats {
		all[<-answers]++
	}
	_, again := s.send(addrB, "")
	all[again]++
	if len(all) != 1 {
		t.Errorf("%d answers: %v", len(all), all)
	}
	var left Stock
	if err := s.db.Take(&left, stock).Error; err != nil {
		t.Fatal(err)
	}
	if left.Left != 9 {
		t.Errorf("%d are left, want 9", left.Left)
	}
	return fmt.Sprintf("%d equal answers, %d effect", all[again], 10-left.Left)
}
