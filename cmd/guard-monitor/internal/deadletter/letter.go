package deadletter

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// MaxShown bounds the bytes of a body that are kept and shown.
const MaxShown = 64 << 10

// Letter is a message that the monitor could not take.
type Letter struct {
	ID         string // of its content: messages that are alike have one ID
	MessageID  string
	Type       string
	RoutingKey string
	Died       time.Time // when it came here; zero if the broker does not say
	Reason     string    // the broker's word, such as rejected or delivery_limit
	Body       []byte    // cut at MaxShown
	Size       int       // bytes as received
	Event      notify.Event
	Sender     string // who sent it, as the broker has verified; empty if nobody is known
	Err        error  // why it is no event; nil if it is one
	Refused    error  // why its sender may not speak for the service; nil until it is judged
}

const idLength = 12

// letter returns the letter of a message. own is the user of guard-monitor.
func letter(d *amqp.Delivery, own string) Letter {
	sum := sha256.Sum256(d.Body)
	l := Letter{
		ID: hex.EncodeToString(sum[:])[:idLength], MessageID: d.MessageId, Type: d.Type, RoutingKey: d.RoutingKey, Sender: intake.SentBy(d, own),
		Body: bytes.Clone(d.Body[:min(len(d.Body), MaxShown)]), Size: len(d.Body),
	}
	l.Event, l.Err = intake.Decode(d.Body)
	l.Died, l.Reason = death(d.Headers)
	return l
}

// death reads the broker's headers about the last death, whatever their types are.
func death(headers amqp.Table) (at time.Time, reason string) {
	deaths, _ := headers["x-death"].([]any)
	if len(deaths) == 0 {
		return at, ""
	}
	last, _ := deaths[0].(amqp.Table)
	at, _ = last["time"].(time.Time)
	reason, _ = last["reason"].(string)
	return at, reason
}

// Line returns a summary of the letter, as one line of printable text.
func (l *Letter) Line() string {
	what := "no event"
	if l.Err == nil {
		what = fmt.Sprintf("event %s of %s, key %s", l.Event.Verdict, l.Event.Service, l.Event.Key)
	}
	if l.Refused != nil {
		what = "refused " + what
	}
	return text.Line(text.Clip(fmt.Sprintf("%s %s %s %d bytes: %s", l.ID, cmp.Or(l.died(), "-"), cmp.Or(l.Reason, "-"), l.Size, what), maxLine))
}

const maxLine = 300 // bytes

func (l *Letter) died() string {
	if l.Died.IsZero() {
		return ""
	}
	return l.Died.UTC().Format(time.RFC3339)
}

// Text returns all fields of the letter and its body, as lines of printable text.
func (l *Letter) Text() string {
	var b strings.Builder
	field := func(name, value string) {
		fmt.Fprintf(&b, "%-12s %s\n", name+":", text.Line(text.Clip(cmp.Or(value, "-"), maxLine)))
	}
	field("id", l.ID)
	field("message id", l.MessageID)
	field("type", l.Type)
	field("routing key", l.RoutingKey)
	field("sender", l.Sender)
	field("reason", l.Reason)
	field("died", l.died())
	problem := "none: this is an event, and can be replayed"
	if err := cmp.Or(l.Err, l.Refused); err != nil {
		problem = err.Error()
	}
	field("problem", problem)
	field("size", fmt.Sprintf("%d bytes", l.Size))
	b.WriteByte('\n')
	b.WriteString(text.Lines(l.Body) + "\n")
	if l.Size > len(l.Body) {
		fmt.Fprintf(&b, "... and %d more bytes\n", l.Size-len(l.Body))
	}
	return b.String()
}
