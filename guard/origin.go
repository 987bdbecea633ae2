package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/belaygo/belay/internal/message"
)

// An origin is where messages come from: one attempt of an operation. It gives them their keys and
// ids. It is safe for concurrent use.
type origin struct {
	plan    *plan
	request *claiming // that the operation serves, nil if there is none
	refusal bool      // the messages leave with a refusal
	main    string    // the key of a message that names none

	*attempted
}

// attempted is what the messages of one attempt have in common, those of a nested Do included.
type attempted struct {
	mu    sync.Mutex
	place int             // of the next message
	taken map[string]bool // ids of the messages that were sent
}

// newOrigin returns that of messages whose ids are their own.
func newOrigin(p *plan, request *claiming) *origin {
	return &origin{plan: p, request: request, main: p.main, attempted: &attempted{}}
}

// within returns that of a nested Do.
func (o *origin) within(key string) origin {
	nested := *o
	nested.main = key
	return nested
}

// refused returns that of the messages which leave with a refusal. Their ids are their own: the
// request may be served after all, when its refusal is kept no longer.
func (o *origin) refused() *origin {
	return &origin{plan: o.plan, request: o.request, refusal: true, main: o.main, attempted: &attempted{}}
}

// row returns a message as it is stored.
func (o *origin) row(m Message) (message.Row, error) {
	if err := checkMessage(m); err != nil {
		return message.Row{}, err
	}
	r := message.Row{MessageID: o.id(m), Key: m.Key, Topic: m.Topic, Headers: m.Headers, Body: m.Body}
	if r.Key == "" {
		r.Key = o.main
	}
	if o.plan.find(r.Key) == nil {
		return message.Row{}, fmt.Errorf("%w: topic %.40q: the operation does not hold the key %q, so nothing would order its messages: "+
			"add the key by Also, or leave it empty for that of the operation; it holds %s", ErrMessage, m.Topic, r.Key, o.held())
	}
	if err := r.Validate(); err != nil {
		return message.Row{}, fmt.Errorf("%w: topic %.40q: %w", ErrMessage, m.Topic, err)
	}
	return r, nil
}

// held lists the keys of the operation.
func (o *origin) held() string {
	keys := make([]string, len(o.plan.keys))
	for i := range o.plan.keys {
		keys[i] = strconv.Quote(o.plan.keys[i].key)
	}
	return strings.Join(keys, ", ")
}

// id returns the id of the next message. The place counts messages that were begun: one that a
// savepoint has undone keeps its place.
func (o *origin) id(m Message) string {
	o.mu.Lock()
	place := strconv.Itoa(o.place)
	o.place++
	o.mu.Unlock()
	if o.request == nil {
		return uuid.Must(uuid.NewV7()).String()
	}
	kind := "place"
	if m.Name != "" {
		kind, place = "name", m.Name
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%x %t %s %d %s %s", o.request.sum, o.refusal, kind, len(m.Topic), m.Topic, place)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// take notes that messages are sent. Two with one id would be one.
func (o *origin) take(rows []message.Row) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, r := range rows {
		if o.taken[r.MessageID] {
			o.forget(rows[:i])
			return fmt.Errorf("%w: another message of the operation has the topic %.40q and its Name", ErrMessage, r.Topic)
		}
		if o.taken == nil {
			o.taken = make(map[string]bool)
		}
		o.taken[r.MessageID] = true
	}
	return nil
}

// drop notes that messages are not sent.
func (o *origin) drop(rows []message.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(rows)
}

func (o *origin) forget(rows []message.Row) {
	for _, r := range rows {
		delete(o.taken, r.MessageID)
	}
}
