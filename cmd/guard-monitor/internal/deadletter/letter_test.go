package deadletter_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/deadletter"
)

func TestText(t *testing.T) {
	died := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	l := deadletter.LetterOf(&amqp.Delivery{
		MessageId: "m1", RoutingKey: "event.overlap", Body: []byte(`{"key":"a\u001b[2J","b":"<script>` + "\x1b[2J" + `"}`),
		Headers: amqp.Table{"x-death": []any{amqp.Table{"reason": "rejected", "time": died}}},
	})
	for _, want := range []string{
		"message id:  m1\n", "reason:      rejected\n", "died:        2026-05-04T03:02:01Z\n", `\x1b[2J`, "<script>", "problem:     notify: invalid event",
	} {
		if !strings.Contains(l.Text(), want) {
			t.Errorf("%s\nlacks %q", l.Text(), want)
		}
	}
	l = deadletter.LetterOf(&amqp.Delivery{Body: []byte(event(t))})
	if !strings.Contains(l.Text(), "\n  \"specversion\": \"1.0\",\n") || !strings.Contains(l.Line(), "event overlap of orders, key order:1") {
		t.Errorf("event: %s%s", l.Line(), l.Text())
	}
	l = deadletter.LetterOf(&amqp.Delivery{Body: []byte(strings.Repeat("x", deadletter.MaxShown+7))})
	if len(l.Body) != deadletter.MaxShown || !strings.Contains(l.Text(), "... and 7 more bytes") {
		t.Errorf("a large letter keeps %d bytes", len(l.Body))
	}
}

// Whatever a message holds, it shows as bounded, printable text.
func FuzzLetter(f *testing.F) {
	f.Add([]byte("{}"), "m1", "event.overlap", `{"x-death":[{"reason":"rejected","time":1}]}`)
	f.Add([]byte("\x1b[2J\xff\u202e"), "\n", "", `{"x-death":[1]}`)
	f.Add([]byte(strings.Repeat("[", 20_000)), "", "", `{"x-death":{}}`)
	f.Fuzz(func(t *testing.T, body []byte, id, key, headers string) {
		var table map[string]any
		_ = json.Unmarshal([]byte(headers), &table)
		if list, ok := table["x-death"].([]any); ok {
			for i, v := range list {
				if m, ok := v.(map[string]any); ok {
					list[i] = amqp.Table(m)
				}
			}
		}
		l := deadletter.LetterOf(&amqp.Delivery{Body: body, MessageId: id, RoutingKey: key, Type: id, Headers: table})
		for line := range strings.SplitSeq(strings.TrimSuffix(l.Text(), "\n")+"\n"+l.Line(), "\n") {
			if i := strings.IndexFunc(line, func(r rune) bool { return !strconv.IsPrint(r) }); i >= 0 || !utf8.ValidString(line) {
				t.Fatalf("line %q is not printable", line)
			}
		}
		if len(l.Text()) > 40*deadletter.MaxShown {
			t.Errorf("text of %d bytes", len(l.Text()))
		}
	})
}
