package promises_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/notify"
)

// A sent is a message as the table has it.
type sent struct {
	MessageID  string
	MessageKey []byte
	Topic      string
	Headers    string
	Body       []byte
}

// sentBy returns the messages of a database, in the order of their rows.
func sentBy(t *testing.T, db *gorm.DB) (all []sent) {
	t.Helper()
	wantNil(t, db.Table("belay_message").Order("id").Find(&all).Error)
	return all
}

// wantSent checks which messages there are, by their bodies.
func (e *env) wantSent(bodies ...string) []sent {
	e.t.Helper()
	all := sentBy(e.t, e.db)
	var got []string
	for _, m := range all {
		got = append(got, string(m.Body))
	}
	if strings.Join(got, ", ") != strings.Join(bodies, ", ") {
		e.t.Fatalf("the messages are %q, want %q", got, bodies)
	}
	return all
}

// deliver deletes all messages, as a relay does that has sent them.
func (e *env) deliver() {
	e.t.Helper()
	wantNil(e.t, e.db.Exec("DELETE FROM belay_message").Error)
}

// note is a message with a body.
func note(body string) guard.Message { return guard.Message{Topic: "note", Body: []byte(body)} }

func send(body string) guard.Change { return guard.Send(note(body)) }

func TestSend(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 5})
		body := []byte("\x00one")
		s := Stock{ID: 1}
		change := guard.All(
			guard.Send(guard.Message{Topic: "sale.made", Headers: map[string]string{"Trace-Id": "é7"}, Body: body}),
			guard.SendFunc(func() (guard.Message, error) { return note(fmt.Sprint(s.Left, " left")), nil }),
			guard.Update(&s, take),
			guard.Insert(&Order{No: "a"}),
		)
		copy(body, "xxxx")
		wantNil(e.t, e.Apply(bg, "sku:1", change))
		all := e.wantSent("\x00one", "4 left")
		var headers map[string]string
		wantNil(e.t, json.Unmarshal([]byte(all[0].Headers), &headers))
		if m := all[0]; m.Topic != "sale.made" || string(m.MessageKey) != "sku:1" || headers["Trace-Id"] != "é7" || m.MessageID == all[1].MessageID {
			e.t.Errorf("the message is %q", m)
		}
		e.wantNoEvent()
	})
}

// Probe sees how many messages there are when it is inserted.
type Probe struct {
	ID   int64
	No   string `gorm:"size:64;uniqueIndex"`
	Sent int64  `gorm:"-"`
}

func (p *Probe) AfterCreate(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true}).Table("belay_message").Count(&p.Sent).Error
}

// TestSendIsLast: the writes of an All come before its messages, so that the database orders the
// messages as it orders the writes.
func TestSendIsLast(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Probe{}))
		p := Probe{No: "a"}
		wantNil(e.t, e.Apply(bg, "k", guard.All(send("a"), guard.All(send("b"), guard.Insert(&p)), send("c"))))
		e.wantSent("a", "b", "c")
		if p.Sent != 0 {
			e.t.Errorf("%d messages were there before the row", p.Sent)
		}
	})
}

// TestSendKey: nothing would order the messages of a key that the operation does not hold.
func TestSendKey(t *testing.T) {
	each(t, func(e *env) {
		under := func(key string) guard.Change { return guard.Send(guard.Message{Topic: "note", Key: key}) }
		wantNil(e.t, e.Apply(bg, "a", guard.All(under("b"), under("a"), under("")), guard.Also("b")))
		err := e.Apply(bg, "a", guard.All(guard.Insert(&Order{No: "a"}), under("c")), guard.Also("b"))
		wantIs(e.t, err, guard.ErrMessage)
		if text := err.Error(); !strings.Contains(text, `"c"`) || !strings.Contains(text, "Also") || !strings.Contains(text, `"a", "b"`) {
			e.t.Errorf("error is %q, want one that names the way out", text)
		}
		wantNil(e.t, e.Do(bg, "a", func(ctx context.Context, tx *gorm.DB) error {
			return e.Apply(ctx, "b", under(""))
		}, guard.Also("b")))
		var keys []string
		for _, m := range sentBy(e.t, e.db) {
			keys = append(keys, string(m.MessageKey))
		}
		if got := strings.Join(keys, ","); got != "b,a,a,b" || e.count(&Order{}) != 0 {
			e.t.Errorf("the keys are %q, with %d orders", got, e.count(&Order{}))
		}
	})
}

// idsOf returns the ids of messages, and delivers them.
func (e *env) idsOf() (ids []string) {
	e.t.Helper()
	for _, m := range sentBy(e.t, e.db) {
		ids = append(ids, m.MessageID)
	}
	e.deliver()
	return ids
}

// TestSendID: a request that runs again sends the same ids, whether or not its first messages are
// there still.
func TestSendID(t *testing.T) {
	each(t, func(e *env) {
		named := guard.Message{Topic: "note", Name: "mail", Body: []byte("b")}
		run := func(opts ...guard.Option) {
			e.t.Helper()
			wantNil(e.t, e.Do(bg, "k", guard.All(send("a"), guard.Send(named), send("c")).Run, opts...))
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error) // as after a lost commit
		}
		run(guard.For(request("1")))
		run(guard.For(request("1"))) // sent already
		e.wantSent("a", "b", "c")
		first := e.idsOf()
		run(guard.For(request("1")))
		if again := e.idsOf(); fmt.Sprint(again) != fmt.Sprint(first) {
			e.t.Errorf("the ids are %q, and were %q", again, first)
		}
		run(guard.For(request("2")))
		others := e.idsOf()
		wantNil(e.t, e.Do(bg, "k", guard.All(guard.Send(named), guard.Send(guard.Message{Topic: "other"})).Run, guard.For(request("1"))))
		if moved := e.idsOf(); moved[0] != first[1] || moved[1] == first[1] {
			e.t.Errorf("the ids in another order are %q, and were %q", moved, first)
		}
		run()
		run()
		others = append(others, e.idsOf()...)
		seen := make(map[string]bool)
		for _, id := range append(others, first...) {
			seen[id] = true
		}
		if len(seen) != 12 {
			e.t.Errorf("12 messages have %d ids", len(seen))
		}
	})
}

// TestSendNameTwice: two messages with one id would be one.
func TestSendNameTwice(t *testing.T) {
	each(t, func(e *env) {
		m := guard.Send(guard.Message{Topic: "note", Name: "mail", Body: []byte("a")})
		wantIs(e.t, e.Apply(bg, "k", guard.All(m, m), guard.For(request("1"))), guard.ErrMessage)
		op := func(ctx context.Context, tx *gorm.DB) error { return errors.Join(m.Run(ctx, tx), m.Run(ctx, tx)) }
		wantIs(e.t, e.Do(bg, "k", op, guard.For(request("2"))), guard.ErrMessage)
		e.wantSent()
		wantNil(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			_ = tx.Transaction(func(tx *gorm.DB) error { return errors.Join(m.Run(ctx, tx), errSoldOut) })
			return m.Run(ctx, tx)
		}, guard.For(request("3"))))
		e.wantSent("a")
	})
}

// TestSendRolledBack: a message goes with what it was sent with.
func TestSendRolledBack(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "there"})
		wantIs(e.t, e.Apply(bg, "k", guard.All(send("a"), guard.Insert(&Order{No: "there"}))), guard.ErrDuplicate)
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			return errors.Join(send("b").Run(ctx, tx), errSoldOut)
		}), errSoldOut)
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, send("c").Run(ctx, tx))
			return guard.Insert(&Order{No: "there"}).Run(ctx, tx)
		}), guard.ErrDuplicate)
		e.wantSent()
		wantNil(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, send("d").Run(ctx, tx))
			err := e.Apply(ctx, "k", guard.All(guard.Insert(&Order{No: "e"}), send("e"), guard.SendFunc(func() (guard.Message, error) {
				return guard.Message{}, errSoldOut
			})))
			wantIs(e.t, err, errSoldOut)
			_ = tx.Transaction(func(tx *gorm.DB) error { return errors.Join(send("f").Run(ctx, tx), errSoldOut) })
			return send("g").Run(ctx, tx)
		}))
		e.wantSent("d", "g")
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders", n)
		}
	})
}

// TestSendAgain: an operation that is made again sends once.
func TestSendAgain(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 5})
		for n, opts := range [][]guard.Option{nil, {guard.For(request("1"))}} {
			tries := 0
			wantNil(e.t, e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
				tries++
				err := guard.All(guard.Update(&Stock{ID: 1}, take), send("a")).Run(ctx, tx)
				if tries == 1 && err == nil {
					return errDeadlock
				}
				return err
			}, append(opts, guard.Retries(1))...))
			e.wantSent("a")
			e.deliver()
			if left := e.stock(1).Left; tries != 2 || left != 4-n {
				e.t.Errorf("%d tries, %d left", tries, left)
			}
		}
	})
}

// TestSendRefused: what a message may not have is refused before anything is sent to the database,
// and the operation may do without it.
func TestSendRefused(t *testing.T) {
	e := onSQLite(t)
	headers := func(name, value string) guard.Message {
		return guard.Message{Topic: "note", Headers: map[string]string{name: value}}
	}
	for what, m := range map[string]guard.Message{
		"no topic":        {Body: []byte("a")},
		"blank in topic":  {Topic: "a note"},
		"large body":      {Topic: "note", Body: make([]byte, 1<<20+1)},
		"no header name":  headers("", "a"),
		"blank in header": headers("a b", "c"),
		"accent":          headers("é", "c"),
		"line in header":  headers("a", "b\r\nc: d"),
		"large headers":   headers("a", strings.Repeat("b", 1<<14)),
		"one header":      {Topic: "note", Headers: map[string]string{"trace-id": "a", "Trace-Id": "b"}},
	} {
		wantNil(t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			if err := guard.Send(m).Run(ctx, tx); !errors.Is(err, guard.ErrMessage) {
				t.Errorf("%s: error is %v", what, err)
			}
			return nil
		}))
	}
	wantNil(t, e.Apply(bg, "k", guard.Send(guard.Message{Topic: "note", Body: make([]byte, 1<<20)})))
	if err := e.Apply(bg, "k", guard.SendFunc(nil)); err == nil {
		t.Error("a nil function is not refused")
	}
	if err := send("a").Run(bg, e.db); err == nil {
		t.Error("a message outside of an operation is not refused")
	}
	if n := len(sentBy(t, e.db)); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// TestSendWithoutTable: the error names what creates the table, and what was written with the
// message is rolled back, also if the operation ignores the error.
func TestSendWithoutTable(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.Migrator().DropTable("belay_message"))
		err := e.Apply(bg, "k", guard.All(guard.Insert(&Order{No: "a"}), send("a")))
		if err == nil || !strings.Contains(err.Error(), "relay.Migrate") {
			e.t.Errorf("error is %v, want one that names relay.Migrate", err)
		}
		err = e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, guard.Insert(&Order{No: "b"}).Run(ctx, tx))
			_ = send("b").Run(ctx, tx)
			return nil
		})
		if err == nil || e.count(&Order{}) != 0 {
			e.t.Errorf("error is %v, with %d orders", err, e.count(&Order{}))
		}
	})
}

// verdicts are operations with the verdicts that they get. alone is without the message that send
// sends: the verdict does not depend on it.
var verdicts = map[string]struct {
	err   error
	event notify.Verdict
	run   func(e *env, send func(ctx context.Context, tx *gorm.DB)) error
}{
	"done": {nil, "", func(e *env, send func(context.Context, *gorm.DB)) error {
		return e.Do(bg, "order:b", func(ctx context.Context, tx *gorm.DB) error {
			send(ctx, tx)
			return guard.Insert(&Order{No: "b"}).Run(ctx, tx)
		})
	}},
	"duplicate": {guard.ErrDuplicate, "", func(e *env, send func(context.Context, *gorm.DB)) error {
		return e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			send(ctx, tx)
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
	}},
	"stale": {guard.ErrStale, "", func(e *env, send func(context.Context, *gorm.DB)) error {
		return e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
			send(ctx, tx)
			return guard.Update(&Stock{ID: 1, Version: 1}, take).Run(ctx, tx)
		}, guard.Protects(&Stock{ID: 1}))
	}},
	"overlap of inserts": {guard.ErrIntercepted, notify.VerdictOverlap, func(e *env, send func(context.Context, *gorm.DB)) error {
		return e.Do(bg, "order:c", func(ctx context.Context, tx *gorm.DB) error {
			e.loseTo("order:c", guard.Insert(&Order{No: "c"}).Run)
			send(ctx, tx)
			return guard.Insert(&Order{No: "c"}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "c"}))
	}},
	"overlap of updates": {guard.ErrIntercepted, notify.VerdictOverlap, func(e *env, send func(context.Context, *gorm.DB)) error {
		s := e.stock(1)
		return e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
			e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
			send(ctx, tx)
			return tx.Model(&s).Update("left", s.Left-1).Error
		}, guard.Protects(&Stock{ID: 1}))
	}},
}

// TestSendLeavesVerdicts: a message is no evidence for or against the lock.
func TestSendLeavesVerdicts(t *testing.T) {
	for name, v := range verdicts {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(e *env) {
				wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
				e.create(&Stock{ID: 1, Left: 5})
				wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
				err := v.run(e, func(ctx context.Context, tx *gorm.DB) { wantNil(e.t, send("a").Run(ctx, tx)) })
				if !errors.Is(err, v.err) {
					e.t.Errorf("error is %v, want %v", err, v.err)
				}
				if v.err == nil {
					e.wantSent("a")
				} else {
					e.wantSent()
				}
				switch all := e.Events.All(); {
				case v.event == "" && len(all) != 0, v.event != "" && (len(all) != 1 || all[0].Verdict != v.event):
					e.t.Errorf("the events are %+v, want %q", all, v.event)
				}
			})
		})
	}
}

// TestSendIsNoCover: without the lock, a message makes no other write safe, and needs no lock itself.
func TestSendIsNoCover(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 5})
		g, _ := e.dbOnly(guard.Config{})
		raw := func(ctx context.Context, tx *gorm.DB) error {
			return tx.Exec("UPDATE stocks SET version = version + 1 WHERE id = 1").Error
		}
		wantIs(e.t, g.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
			return errors.Join(raw(ctx, tx), send("a").Run(ctx, tx))
		}, guard.Protects(&Stock{ID: 1})), guard.ErrUnavailable)
		e.wantSent()
		wantNil(e.t, g.Apply(bg, "sku:1", guard.All(guard.Update(&Stock{ID: 1}, take), send("b"))))
		wantNil(e.t, g.Apply(bg, "sku:1", send("c")))
		e.wantSent("b", "c")
	})
	each(t, func(e *env) { // nor is it counted as a write that only the lock guards
		wantNil(e.t, e.Apply(bg, "a", guard.All(guard.Insert(&Order{No: "a"}), send("a"))))
		wantNil(e.t, e.Apply(bg, "a", send("b")))
		if n := metricsOf(e.t, e.Guard.Guard)["uncovered_total belay_message"]; n != 0 {
			e.t.Errorf("%v uncovered writes", n)
		}
	})
}

// TestRefuseAfterSend: what an operation has sent is rolled back with its refusal, and what leaves
// with the refusal is sent with the answer, once.
func TestRefuseAfterSend(t *testing.T) {
	each(t, func(e *env) {
		for n, sends := range []bool{true, false} {
			r := request(fmt.Sprint(n))
			for again := range 2 {
				a, err := guard.Once(bg, e.Guard.Guard, r, func(ctx context.Context, tx *gorm.DB) (string, error) {
					if sends {
						wantNil(e.t, send("sold").Run(ctx, tx))
					}
					return "", guard.Refuse("declined", note("declined"), guard.Message{Topic: "mail", Key: "sku:1", Body: []byte("mail")})
				}, guard.Also("sku:1"))
				wantNil(e.t, err)
				if a.Value != "declined" || !a.Refused || a.Replayed != (again == 1) {
					e.t.Errorf("the answer is %+v", a)
				}
			}
			all := e.wantSent("declined", "mail")
			if string(all[0].MessageKey) != r.Key() || string(all[1].MessageKey) != "sku:1" {
				e.t.Errorf("the messages are %q", all)
			}
			e.deliver()
		}
		_, err := guard.Once(bg, e.Guard.Guard, request("x"), func(context.Context, *gorm.DB) (string, error) {
			return "", guard.Refuse("declined", guard.Message{Topic: "mail", Key: "sku:1"})
		})
		wantIs(e.t, err, guard.ErrMessage)
		served, err := e.Served(bg, request("x"))
		wantNil(e.t, err)
		if served {
			e.t.Error("a refusal without its message was stored")
		}
		e.wantSent()
	})
}

// TestRefusalHasItsOwnIDs: a request that is served after its refusal was forgotten sends other
// messages than the refusal.
func TestRefusalHasItsOwnIDs(t *testing.T) {
	each(t, func(e *env) {
		for _, refuses := range []bool{true, false} {
			_, err := guard.Once(bg, e.Guard.Guard, request("1"), func(ctx context.Context, tx *gorm.DB) (string, error) {
				if refuses {
					return "", guard.Refuse("declined", note("declined"))
				}
				return "sold", send("sold").Run(ctx, tx)
			})
			wantNil(e.t, err)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_answer").Error)
		}
		e.wantSent("declined", "sold")
	})
}

// TestOnceSendsOnce: a repeat gets the answer, and sends nothing.
func TestOnceSendsOnce(t *testing.T) {
	each(t, func(e *env) {
		for range 2 {
			a, err := guard.Once(bg, e.Guard.Guard, request("1"), func(ctx context.Context, tx *gorm.DB) (string, error) {
				return "sold", guard.All(send("sold"), guard.Insert(&Order{No: "a"})).Run(ctx, tx)
			}, guard.Also("order:a", &Order{No: "a"}))
			wantNil(e.t, err)
			if a.Value != "sold" {
				e.t.Errorf("the answer is %+v", a)
			}
		}
		e.wantSent("sold")
	})
}
