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

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// A user is one open connection.
type user struct {
	addr string
	conn net.Conn
	in   *bufio.Reader
}

func connect(ctx context.Context, addr string) (*user, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &user{addr, conn, bufio.NewReaderSize(conn, 1<<10)}, nil
}

func (u *user) close() { _ = u.conn.Close() }

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

// operate sends one request of a method and reads what became of it. It reports
// false when the connection is of no more use.
func (u *user) operate(path string, deadline time.Time) (answer shop.Answer, alive bool) {
	status, body, err := u.ask(http.MethodPost, path, deadline)
	if err != nil {
		return shop.Answer{Result: shop.Failed, Error: err.Error()}, false
	}
	return checked(status, body), true
}

// checked reads an answer: what it says must go with its status.
func checked(status int, body []byte) shop.Answer {
	var answer shop.Answer
	err := json.Unmarshal(body, &answer)
	right := status == http.StatusOK && answer.Result == shop.Done ||
		status == http.StatusConflict && answer.Result.Refused() && answer.Result != ""
	switch {
	case err == nil && right:
		return answer
	case err == nil && answer.Result == shop.Failed:
		return answer
	}
	return shop.Answer{Result: shop.Failed, Error: fmt.Sprintf("status %d with body %.100q", status, body)}
}
