package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// server serves s with its live connections until the test ends.
func (s *site) server(tb testing.TB) *httptest.Server {
	tb.Helper()
	return s.behind(tb, s)
}

// behind is server with front before s.
func (s *site) behind(tb testing.TB, front http.Handler) *httptest.Server {
	tb.Helper()
	srv := httptest.NewServer(front)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) }) // returns the error of ctx
	tb.Cleanup(func() {
		stop()
		wg.Wait()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func listen(tb testing.TB, address string) (*http.Response, *bufio.Scanner) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	tb.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/live", nil)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = res.Body.Close() })
	return res, bufio.NewScanner(res.Body)
}

func TestLive(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Every, c.MaxLive = 10*time.Millisecond, 1 })
	srv := s.server(t)
	res, lines := listen(t, srv.URL) //nolint:bodyclose // listen closes it when the test ends
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("no %q came: %v", want, lines.Err())
	}
	until(`"events":0`)
	s.add(t, event("event-1"))
	until(`"events":1`)
	if second, _ := listen(t, srv.URL); second.StatusCode != http.StatusServiceUnavailable { //nolint:bodyclose // listen closes it when the test ends
		t.Errorf("a second connection of one: %d", second.StatusCode)
	}
}

func TestLiveEndsWithRun(t *testing.T) {
	s := newSite(t, func(c *web.Config) { c.Every = 10 * time.Millisecond })
	srv := httptest.NewServer(s)
	defer srv.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	_, lines := listen(t, srv.URL) //nolint:bodyclose // listen closes it when the test ends
	lines.Scan()
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
	for lines.Scan() {
		continue
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the connection ended with %v", err)
	}
}

// stay reads a live connection until ctx ends.
func stay(ctx context.Context, t *testing.T, client *http.Client, address string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return
	}
	res, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("live connection: %d", res.StatusCode)
	}
	_, _ = io.Copy(io.Discard, res.Body) // ends with ctx
}

// Many open pages while events come: how long a page takes is printed. make
// test-web has 50 of them and 200 events a second, which takes a machine of one's
// own.
func TestManyPages(t *testing.T) {
	open, rate, seconds := 10, 50, 2
	if os.Getenv("BELAY_WEB_LOAD") != "" {
		open, rate, seconds = 50, 200, 5
	}
	s := newSite(t)
	srv := s.server(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer stop()
	var wg sync.WaitGroup
	written := 0
	wg.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			ev := event("load-" + time.Duration(written).String())
			if _, err := s.store.Add(context.Background(), ev, nil, ""); err != nil {
				t.Errorf("add: %v", err)
				return
			}
			written++
		}
	})
	var mu sync.Mutex
	var took []time.Duration
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: open}}
	defer client.CloseIdleConnections()
	for range open {
		wg.Go(func() { stay(ctx, t, client, srv.URL+"/live") })
	}
	for i := range open {
		wg.Go(func() {
			tick := time.NewTicker(2 * time.Second) // as often as the script asks
			defer tick.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, srv.URL+pages[i%4], nil)
				if err != nil {
					t.Error(err)
					return
				}
				res, err := client.Do(r)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Errorf("page: %v %v", res, err)
					return
				}
				body := bufio.NewScanner(res.Body)
				body.Buffer(nil, 1<<20)
				for body.Scan() {
					continue
				}
				res.Body.Close()
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	t.Logf("%d pages while %d events came in %d s: p50 %v, p99 %v, max %v", len(took), written, seconds,
		took[len(took)/2].Round(time.Millisecond), took[len(took)*99/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if written == 0 || len(took) < open {
		t.Errorf("only %d events and %d pages", written, len(took))
	}
}
