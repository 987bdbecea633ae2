package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testlog"
)

func TestServe(t *testing.T) {
	t.Parallel()
	cmd := demoCommand(t, "-serve", "-listen", "127.0.0.1:0")
	var out, errs testlog.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	url := regexp.MustCompile(`page: (http://127\.0\.0\.1:\d+)/\n`)
	var base string
	err := until(t.Context(), "the page", func() (bool, error) {
		found := url.FindStringSubmatch(out.String())
		if found != nil {
			base = found[1]
		}
		return found != nil || errs.String() != "", nil
	})
	if err != nil || base == "" {
		t.Fatalf("%v, output:\n%s%s", err, &out, &errs)
	}
	for path, want := range map[string]string{
		"/":                 "shop",
		"/events":           "sku:7",
		"/healthz":          `"status":"ok"`,
		"/metrics":          `belay_monitor_events_total{verdict="lost"} 1`,
		"/api/v1/incidents": `"service":"shop"`,
	} {
		if body := get(t.Context(), base+path); !strings.Contains(body, want) {
			t.Errorf("%s lacks %q:\n%s", path, want, body)
		}
	}
	// The next lock is lost after a while, by another accident.
	err = until(t.Context(), "the second incident", func() (bool, error) {
		return strings.Contains(get(t.Context(), base+"/api/v1/incidents"), `"cause":"flushed"`), nil
	})
	if err != nil {
		t.Error(err)
	}
	ended = true
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errs.String() != "" {
		t.Errorf("%v, %q on standard error", err, &errs)
	}
}

// While Redis does not answer, the page stays.
func TestVisitLater(t *testing.T) {
	t.Parallel()
	v := newVisits(t)
	v.redis.SetError("LOADING Redis is loading the dataset in memory")
	if err := v.shop[0].buy(t.Context(), "2026-9999"); !errors.Is(err, guard.ErrUnavailable) {
		t.Fatalf("buy: %v, want ErrUnavailable", err)
	}
	for _, n := range []int{1, loseEvery} {
		v.n = n - 1
		if err := v.visit(t.Context()); err != nil {
			t.Errorf("visit %d: %v", n, err)
		}
	}
	if err := v.judge(t.Context(), errSoldOut); err != nil {
		t.Errorf("restock: %v", err)
	}
	v.redis.SetError("")
	var sold int64
	if err := errors.Join(v.visit(t.Context()), v.db.Model(&Order{}).Count(&sold).Error); err != nil || sold != 1 {
		t.Errorf("%d sold when Redis answers: %v", sold, err)
	}
}

// What no shopper should get ends it.
func TestVisitFails(t *testing.T) {
	t.Parallel()
	v := newVisits(t)
	if err := v.db.Migrator().DropTable(&Order{}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, loseEvery} {
		v.n = n - 1
		if err := v.visit(t.Context()); err == nil {
			t.Errorf("visit %d succeeds without a table", n)
		}
	}
}

// get returns the body of a page, empty unless the answer is 200.
func get(ctx context.Context, url string) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return ""
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}
