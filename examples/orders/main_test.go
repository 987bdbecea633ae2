package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// It needs no servers, and uses those that the environment names if ON_SERVERS is set.
func TestOrders(t *testing.T) {
	if os.Getenv("ON_SERVERS") == "" {
		for _, server := range []string{"BELAY_REDIS_ADDRS", "BELAY_MYSQL_DSN", "BELAY_AMQP_URL"} {
			t.Setenv(server, "")
		}
	}
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
	handler, err := (&shop{db: db, guard: g}).handler()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	run := time.Now().UnixMicro() // the database may be shared
	c := &client{t, server.URL, fmt.Sprintf("%d-", run)}
	cents := 1 + run
	order := fmt.Sprintf(`{"cents": %d}`, cents)

	c.want(http.StatusNotFound, http.MethodGet, "/orders/999999999", "", "")
	c.want(http.StatusNotFound, http.MethodGet, "/orders/x", "", "")
	c.want(http.StatusBadRequest, http.MethodPost, "/orders", order, "")
	c.want(http.StatusBadRequest, http.MethodPost, "/orders", `{"cents": 0}`, "bad")
	first := c.crowd("/orders", order, "order", http.StatusCreated)
	c.want(http.StatusUnprocessableEntity, http.MethodPost, "/orders", `{"cents": 1}`, "order")
	var o Order
	if err := json.Unmarshal([]byte(first), &o); err != nil {
		t.Fatal(err)
	}

	url := fmt.Sprintf("/orders/%d", o.ID)
	c.want(http.StatusNotFound, http.MethodPost, "/orders/999999999/payment", "", "nothing")
	c.want(http.StatusBadRequest, http.MethodPost, "/orders/x/payment", "", "nothing-else")
	paid := c.crowd(url+"/payment", "", "payment", http.StatusOK)
	c.want(http.StatusConflict, http.MethodPost, url+"/payment", "", "another-payment")
	if got := c.want(http.StatusOK, http.MethodGet, url, "", ""); got != paid || strings.Contains(paid, `"paid_at":null`) {
		t.Errorf("the order is %s, the payment was answered by %s", got, paid)
	}
	var n int64
	if err := db.Model(&Order{}).Where("cents = ?", cents).Count(&n).Error; err != nil || n != 1 {
		t.Errorf("%d orders, error %v", n, err)
	}
}

// client sends requests whose keys begin with key.
type client struct {
	*testing.T
	url, key string
}

// crowd sends one request many times at once, and then again. It returns the answer, which
// all got.
func (c *client) crowd(path, body, key string, done int) string {
	c.Helper()
	statuses := make(chan int, 20)
	for range cap(statuses) {
		go func() {
			status, _ := c.ask(http.MethodPost, path, body, key)
			statuses <- status
		}()
	}
	for range cap(statuses) {
		if got := <-statuses; got != done {
			c.Errorf("%s: one of a crowd got %d", path, got)
		}
	}
	answer := c.want(done, http.MethodPost, path, body, key)
	if again := c.want(done, http.MethodPost, path, body, key); again != answer {
		c.Errorf("%s: got %s, and then %s", path, answer, again)
	}
	return answer
}

func (c *client) want(status int, method, path, body, key string) string {
	c.Helper()
	got, answer := c.ask(method, path, body, key)
	if got != status {
		c.Errorf("%s %s: %d %s, want %d", method, path, got, answer, status)
	}
	return answer
}

func (c *client) ask(method, path, body, key string) (int, string) {
	request, err := http.NewRequestWithContext(c.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.Error(err)
		return 0, ""
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", c.key+key)
	}
	request.SetBasicAuth("eve", "")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil {
		c.Error(err)
	}
	return response.StatusCode, answer.String()
}
