package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
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

// Send returns a Change that sends m with the commit. All sends its messages last, after the
// changes before and behind them: so they are in the order in which the database accepted those
// changes, also if the lock is lost.
//
// A message counts as a write, but guards nothing: add the rows that make a repeat harmless. If the
// operation serves a request (For, Once), the message's id comes from the request, its topic, and
// its Name or its place: a request that runs again, as after a lost commit, sends the same id. A message
// that is still in the table is not stored again. Without a request the id is random.
//
// Run sends at once, and belongs behind the writes of its operation. A message that is sent inside
// a savepoint is rolled back with it. A repeat that gets a stored answer sends nothing, and
// neither does a refusal: see Refuse.
//
// The table of messages must be there: see relay.Migrate. An error of the database rolls the
// operation back. What else is wrong with a message is ErrMessage.
func Send(m Message) Change {
	m = m.clone()
	return SendFunc(func() (Message, error) { return m, nil })
}

// SendFunc is Send of a message that is made after the changes of its All, so that it can have what
// they have made of the rows. With Combine the database has not stored the rows by then. An error
// of it ends the operation. It may be called several times, and must alter nothing.
func SendFunc(f func() (Message, error)) Change {
	return Change{sends: sending{makes: []func() (Message, error){f}}}
}

// SendSQL sends messages inside an operation that writes SQL, as Send(m).Run does with gorm. ctx is
// that of the operation. Outside of one the error matches dbguard.ErrOutside.
func SendSQL(ctx context.Context, messages ...Message) error {
	t, err := dbtx.Operation(ctx)
	if err != nil {
		return err
	}
	return sendingOf(messages).run(ctx, t, nil)
}

// sending is the step that sends the messages of a Change, behind all its other steps.
type sending struct {
	makes   []func() (Message, error)
	request *claiming // of the member whose step it is, with Combine
}

// sendingOf returns the step that sends messages.
func sendingOf(messages []Message) (s sending) {
	for _, m := range messages {
		s.makes = append(s.makes, func() (Message, error) { return m, nil })
	}
	return s
}

// protect implements step. A message is no protected row.
func (s sending) protect(*dbtx.Tx) error {
	if slices.ContainsFunc(s.makes, func(f func() (Message, error)) bool { return f == nil }) {
		return errors.New("guard: SendFunc with a nil function")
	}
	return nil
}

// run implements step.
func (s sending) run(ctx context.Context, t *dbtx.Tx, tx *gorm.DB) error {
	from, err := originOf(ctx)
	if err != nil {
		return err
	}
	rows, err := s.rows(from)
	if err != nil || len(rows) == 0 || tx != nil && tx.DryRun {
		return err
	}
	if err := from.take(rows); err != nil {
		return err
	}
	t.OnRollback(func() { from.drop(rows) })
	if err := t.Send(ctx, rows); err != nil {
		from.drop(rows)
		return err
	}
	fail.Point("guard/message-stored")
	return nil
}

// rows makes the messages, as they are stored.
func (s sending) rows(from *origin) ([]message.Row, error) {
	rows := make([]message.Row, len(s.makes))
	for i, f := range s.makes {
		m, err := f()
		if err != nil {
			return nil, err
		}
		if rows[i], err = from.row(m.clone()); err != nil { // the next function may use the same buffer
			return nil, err
		}
	}
	return rows, nil
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
