package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

func TestOrders(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
		testOrders(t)
	})
	t.Run("stack", func(t *testing.T) {
		teststack.Redis(t)
		t.Setenv("BELAY_MYSQL_DSN", teststack.MySQL(t))
		t.Setenv("BELAY_AMQP_URL", teststack.AMQP(t))
		testOrders(t)
	})
}

func testOrders(t *testing.T) {
	db, g, done, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	}()
	if err := db.AutoMigrate(&Order{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer((&shop{db: db, guard: g}).handler())
	defer server.Close()
	no := strings.ReplaceAll(teststack.Key(t, "A"), ":", "-") // its lock is on a shared cluster
	order := fmt.Sprintf(`{"no": %q, "cents": 990}`, no)

	if _, body := ask(t, http.MethodGet, server.URL+"/orders/"+no, ""); !strings.Contains(body, "Not Found") {
		t.Errorf("an order that is not there: %s", body)
	}
	if status, _ := ask(t, http.MethodPost, server.URL+"/orders", `{"no": ""}`); status != http.StatusBadRequest {
		t.Errorf("an order without number: %d", status)
	}
	want(t, http.StatusBadRequest, http.MethodPost, server.URL+"/orders", `{"no": "{1}", "cents": 990}`)
	crowd(t, server.URL+"/orders", order, http.StatusCreated)
	want(t, http.StatusOK, http.MethodPost, server.URL+"/orders", order)
	want(t, http.StatusConflict, http.MethodPost, server.URL+"/orders", strings.Replace(order, "990", "991", 1))

	crowd(t, server.URL+"/orders/"+no+"/payment", "", http.StatusOK)
	first := want(t, http.StatusOK, http.MethodGet, server.URL+"/orders/"+no, "")
	again := want(t, http.StatusOK, http.MethodPost, server.URL+"/orders/"+no+"/payment", "")
	if first != again || strings.Contains(first, `"paid_at":null`) {
		t.Errorf("paid again: %s, before: %s", again, first)
	}
	var n int64
	if err := db.Model(&Order{}).Count(&n).Error; err != nil || n != 1 {
		t.Errorf("%d orders, error %v", n, err)
	}
}

// crowd asks for the same thing many times at once: it is done, done before, or
// somebody is at it.
func crowd(t *testing.T, url, body string, done int) {
	t.Helper()
	var mu sync.Mutex
	got := make(map[int]int)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			status, _ := ask(t, http.MethodPost, url, body)
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	wg.Wait()
	if got[done] == 0 || done == http.StatusCreated && got[done] != 1 || got[http.StatusInternalServerError] > 0 {
		t.Errorf("answers of %s: %v", url, got)
	}
}

func want(t *testing.T, status int, method, url, body string) string {
	t.Helper()
	got, answer := ask(t, method, url, body)
	if got != status {
		t.Errorf("%s %s: %d %s, want %d", method, url, got, answer, status)
	}
	return answer
}

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode, answer.String()
}
