package testamqp

import (
	"net/url"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// OnChannel gives f a channel of the test's own, not through a Proxy.
func OnChannel(t testing.TB, brokerURL string, f func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial(brokerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	f(ch)
}

// Depth returns how many messages are ready in a queue.
func Depth(t testing.TB, brokerURL, queue string) (n int) {
	t.Helper()
	OnChannel(t, brokerURL, func(ch *amqp.Channel) {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		n = q.Messages
	})
	return n
}

// WithoutPassword expects that an error does not give away the broker's password.
func WithoutPassword(t testing.TB, brokerURL string, err error) {
	t.Helper()
	u, parseErr := url.Parse(brokerURL)
	if parseErr != nil {
		t.Fatal("the broker's URL is none")
	}
	if password, ok := u.User.Password(); ok && err != nil && strings.Contains(err.Error(), password) {
		t.Error("the error holds the password")
	}
}
