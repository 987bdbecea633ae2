package main_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

// BenchmarkBigStore measures a guard-monitor with 1,000,000 events, 10,000 incidents of the
// last six hours, half of them open, and four receivers: the share of a core that it needs
// while nothing happens, and for each page the slowest of 20 requests, and the processor time of
// one. Making the file takes a minute or two:
//
//	go test -run '^$' -bench BigStore -benchtime 1x -timeout 30m .
//
// docs/setup.md has the budget.
func BenchmarkBigStore(b *testing.B) {
	var told sync.Map // paths of receivers that have a message
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		told.Store(r.URL.Path, true)
	}))
	defer sink.Close()
	var text strings.Builder
	text.WriteString("listen: 127.0.0.1:0\ningest:\n  - {name: all, token: " + ingestToken + ", services: ['*']}\nincidents:\n  quiet: 24h\nreceivers:\n")
	for n := range 4 {
		fmt.Fprintf(&text, "  - {name: r%d, type: webhook, url: %s/%[1]d}\n", n, sink.URL)
	}
	db := bigStore(b)
	for b.Loop() {
		p := start(b, nil, "serve", "-config", settings(b, text.String()), "-db", db)
		began := time.Now()
		for n := range 4 {
			for ok := false; !ok; _, ok = told.Load(fmt.Sprintf("/%d", n)) {
				<-time.After(100 * time.Millisecond)
			}
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-notify")
		const idle, requests = 20 * time.Second, 20
		for logged := -1; ; <-time.After(idle) { // what was sent
			n := count(b, db, "notifications")
			if n == logged {
				break
			}
			logged = n
		}
		used := p.cpu()
		<-time.After(idle)
		b.ReportMetric(100*(p.cpu()-used).Seconds()/idle.Seconds(), "%core")
		for _, path := range []string{
			"/", "/timeline", "/timeline?hours=168", "/timeline?service=service-7", "/incidents", "/incidents?show=all&service=service-7",
			"/incidents?show=all&cause=deleted", "/events", "/events?service=service-7", "/events?table=nowhere", "/events?table=orders",
			"/events?verdict=unavailable", "/events?verdict=overlap", "/events?verdict=lost,unavailable", "/events?cause=deleted", "/events?cause=failover", "/events?key=order:7", "/events?service=service-7&verdict=lost", "/events?from=2026-01-01&to=2026-01-02",
			"/metrics", "/api/v1/overview", "/api/v1/services", "/api/v1/incidents?limit=1000", "/api/v1/events?limit=1000",
		} {
			before := p.cpu()
			longest := p.slowest(path, requests)
			b.Logf("slowest %6v, processor %6v: %s", longest.Round(time.Millisecond), (p.cpu()-before).Round(time.Millisecond)/requests, path)
		}
		p.stop(syscall.SIGTERM)
	}
}

// slowest returns the time of the slowest of n requests.
func (p *process) slowest(path string, n int) (longest time.Duration) {
	p.t.Helper()
	for range n {
		began := time.Now()
		if code, _ := p.get(path); code != http.StatusOK {
			p.t.Errorf("%s: %d after %v", path, code, time.Since(began))
		}
		longest = max(longest, time.Since(began))
	}
	return longest
}

func count(b *testing.B, path, table string) (n int) {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(b.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu is how much time of a core the process has used.
func (p *process) cpu() time.Duration {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third on
	var ticks, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &ticks, &system); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(ticks+system) * (time.Second / 100)
}

// bigStore makes the file of BenchmarkBigStore.
//
//nolint:dupword // SQL
func bigStore(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "monitor.db")
	st, err := store.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-200000)")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	body, err := json.Marshal(event("EVENT-ID"))
	if err != nil {
		b.Fatal(err)
	}
	rows := strings.Repeat(`,{"at":"2026-05-04T03:02:01Z","node":"10.0.0.1:6379","kind":"nothing_lost"}`, 4)
	now, hours := time.Now().UnixMicro(), (6 * time.Hour).Microseconds()
	for _, stmt := range slices.Concat([]string{
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
			INSERT INTO incidents (id, group_key, service, cause, cluster, shard, node, slot, state, confidence, first_at, last_at, seen_at,
				updated_at, opened_at, resolved_at, events, failures, keys, unknowns, undone, regressed, evidence, doc_link, merged_into, rate)
			SELECT printf('0199a1b2-c3d4-7e5f-8a6b-%%012d', i), 'v1|service-' || i %% 500 || '|failover|main|' || i, 'service-' || i %% 500,
				'failover', 'main', i, '10.0.0.1:6379', 42, iif(i %% 2, 'resolved', 'ongoing'), 'high', at, at, at, at, at, iif(i %% 2, at, 0),
				100, 100, 100, iif(i %% 10, 0, 3), 97, 0, '[%s]', 'docs/alerts/failover.md', '', '{}'
			FROM (SELECT i, %d + i * %d AS at FROM n)`, rows[1:], now-hours, hours/10_000),
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 499)
			INSERT INTO heartbeats (service, instance, at, every, received_at) SELECT 'service-' || i, 'i', %[1]d, %[2]d, %[1]d FROM n`,
			now, (24 * time.Hour).Microseconds()),
	}, someEvents(now-hours, hours, string(body))) {
		if _, err := db.ExecContext(context.Background(), stmt); err != nil {
			b.Fatal(err)
		}
	}
	return path
}

// someEvents returns statements that insert a million events, in parts.
//
//nolint:dupword // SQL
func someEvents(from, long int64, body string) (stmts []string) {
	const all, part = 1_000_000, 50_000
	for first := 0; first < all; first += part {
		stmts = append(stmts, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome, key, table_name, node, slot, count, body, body_size, incident_id)
			SELECT id, at, at, 'service-' || i %% 500, 'i', iif(i %% 1000, 'overlap', 'lost'), iif(i %% 5000, 'refused', 'unknown'), 'order:' || i, 'orders',
				'10.0.0.1:6379', 42, 1, CAST(replace('%s', 'EVENT-ID', id) AS BLOB), %d, printf('0199a1b2-c3d4-7e5f-8a6b-%%012d', i %% 10000)
			FROM (SELECT i, printf('0199a1b2-0000-7e5f-8a6b-%%012d', i) AS id, %d + i * %d AS at FROM n)`,
			first, first+part-1, body, len(body), from, long/all))
	}
	return stmts
}
