// Package load sends requests the way a crowd of users does: a closed loop, each
// user with a connection of its own that stays open, as JMeter's threads have.
package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A user is one open connection.
type user struct {
	addr string
	conn net.Conn // nil: none
	in   *bufio.Reader
}

func (u *user) connect(ctx context.Context) (err error) {
	var d net.Dialer
	if u.conn, err = d.DialContext(ctx, "tcp", u.addr); err != nil {
		u.conn = nil
		return err
	}
	u.in = bufio.NewReaderSize(u.conn, 1<<10)
	return nil
}

func (u *user) close() {
	if u.conn != nil {
		_ = u.conn.Close()
	}
}

// connectAll opens a connection per request, and waits for a first answer on each. It
// also returns those that are open after an error.
func connectAll(ctx context.Context, requests []Request) ([]user, error) {
	users := make([]user, len(requests))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i, r := range requests {
		u := &users[i]
		u.addr = r.Addr
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			err := u.connect(ctx)
			if err != nil {
				return fmt.Errorf("connect user %d of %d: %w", i+1, len(users), err)
			}
			status, _, err := u.ask(http.MethodGet, "/healthz", time.Now().Add(10*time.Second))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d", status)
			}
			if err != nil {
				return fmt.Errorf("first request of a user: %w", err)
			}
			return nil
		})
	}
	return users, group.Wait()
}

func closeAll(users []user) {
	for i := range users {
		users[i].close()
	}
}

const maxBody = 64 << 10

// ask sends one request and checks the answer.
func (u *user) ask(method, path string, deadline time.Time) (status int, body []byte, err error) {
	if err := u.conn.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	request := method + " " + path + " HTTP/1.1\r\nHost: " + u.addr + "\r\nContent-Length: 0\r\n\r\n"
	if _, err := io.WriteString(u.conn, request); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(u.in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.Close {
		return 0, nil, fmt.Errorf("the server closes the connection after status %s", response.Status)
	}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxBody))
	return response.StatusCode, body, err
}

// operate sends one request of a method and reads what became of it.
func (u *user) operate(path string, deadline time.Time) shop.Answer {
	status, body, err := u.ask(http.MethodPost, path, deadline)
	if err != nil {
		return shop.Answer{Result: shop.Failed, Error: err.Error()}
	}
	return checked(status, body)
}

// checked reads an answer: what it says must go with its status.
func checked(status int, body []byte) shop.Answer {
	var answer shop.Answer
	err := json.Unmarshal(body, &answer)
	right := status == http.StatusOK && answer.Result == shop.Done ||
		status == http.StatusConflict && answer.Result.Refused() && answer.Result != ""
	if err == nil && (right || answer.Result == shop.Failed) {
		return answer
	}
	return shop.Answer{Result: shop.Failed, Error: fmt.Sprintf("status %d with body %.100q", status, body)}
}
