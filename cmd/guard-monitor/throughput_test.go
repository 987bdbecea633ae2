package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPostedEvents posts events over 24 connections, each answered after the event is on
// disk, while they are grouped into incidents. It reports events a second, and the processor
// time that guard-monitor needs for one.
//
//	go test -run '^$' -bench PostedEvents -benchtime 50000x .
func BenchmarkPostedEvents(b *testing.B) {
	const connections = 24 // an entry of ingest may have 32 requests at a time
	text := strings.Replace(ingestSettings, "services: [orders]", "services: ['*']\n    events_per_second: 100000\n    burst: 100000", 1)
	p := start(b, nil, "serve", "-config", settings(b, text), "-db", filepath.Join(b.TempDir(), "monitor.db"), "-listen", "127.0.0.1:0")
	p.stdout.drop() // a line for each event
	url := p.url() + "/api/v1/events"
	transport := &http.Transport{MaxIdleConnsPerHost: connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	post := func(n int64) error {
		ev := event(fmt.Sprintf("0199a1b2-c3d4-7e5f-8a6b-%012d", n))
		ev.Key, ev.Service, ev.CaughtAt = fmt.Sprint("order:", n), fmt.Sprint("service-", n%5), time.Now()
		body, err := json.Marshal(ev)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+ingestToken)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		if err == nil && res.StatusCode != http.StatusAccepted {
			err = fmt.Errorf("event %d: %s", n, res.Status)
		}
		return err
	}
	used := p.cpu()
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := post(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((p.cpu()-used).Microseconds())/float64(b.N), "cpu-µs/event")
	p.stop(syscall.SIGTERM)
}
