package guard

import (
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrMessage is returned when a message cannot be sent: its topic, a header, its name or its size
// is not allowed, or the operation does not hold its key. The operation can be committed without it.
var ErrMessage = errors.New("guard: message cannot be sent")

// A Message leaves the service after the commit of its operation, or never: it is a row of the
// operation's transaction, and package relay takes it out. It arrives at least once, each time
// with the same id. Package inbox makes it take effect once.
type Message struct {
	// Topic selects the way out, 1 to 255 visible characters of ASCII.
	Topic string
	// Key orders messages: those of one key leave in the order of their commits. The operation
	// must hold it: the key of Do, Apply or the nested Do, or one of Also. Defaults to the key
	// that Do or Apply was given. The key of Once is that of the request, which orders nothing
	// between requests: name one of Also. Without the lock, under DBOnly, a message has no order.
	Key string
	// Name distinguishes the messages of one request, in the message's id. Defaults to the place
	// of the message among those that the operation sends. Set it if an operation that runs again
	// may send its messages in another order.
	Name string
	// Headers go with the body. A name is a token as in HTTP, and a value has no control
	// characters. Together they have 16 KiB at most, as JSON.
	Headers map[string]string
	// Body has 1 MiB at most. Send copies it.
	Body []byte
}

func (m Message) clone() Message {
	m.Headers, m.Body = maps.Clone(m.Headers), slices.Clone(m.Body)
	return m
}

// checkMessage returns an error that matches ErrMessage unless each header can go out by each way.
// What the table can store, package message checks.
func checkMessage(m Message) error {
	for name, value := range m.Headers {
		switch {
		case !isToken(name):
			return fmt.Errorf("%w: topic %.40q: header name %.40q is not a token of HTTP", ErrMessage, m.Topic, name)
		case !utf8.ValidString(value):
			return fmt.Errorf("%w: topic %.40q: header %s is not UTF-8", ErrMessage, m.Topic, name)
		case strings.ContainsFunc(value, isControl):
			return fmt.Errorf("%w: topic %.40q: header %s has a control character", ErrMessage, m.Topic, name)
		}
	}
	return twins(m)
}

// twins returns an error if two names are the same header to HTTP.
func twins(m Message) error {
	seen := make(map[string]string, len(m.Headers))
	for name := range m.Headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if other, ok := seen[canonical]; ok {
			return fmt.Errorf("%w: topic %.40q: headers %s and %s are the same one", ErrMessage, m.Topic, min(name, other), max(name, other))
		}
		seen[canonical] = name
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// isToken reports whether a name is a token as RFC 9110 has it.
func isToken(name string) bool {
	const others = "!#$%&'*+-.^_`|~"
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune(others, r)
	})
}
