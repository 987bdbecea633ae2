package receiver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// object is an object of JSON.
type object = map[string]any

// robot returns the function that sends the message of a chat robot and reads the
// answer with check, which returns nil if the robot took the message.
func (r *Receiver) robot(message func(*Notification) object, check func(answer string) *Error) func(context.Context, *Notification) error {
	return func(ctx context.Context, n *Notification) error {
		address, err := r.address()
		if err != nil {
			return err
		}
		a, err := r.post(ctx, address, message(n))
		if failed, ok := errors.AsType[*Error](err); ok {
			// Some robots answer 400 when they are only busy.
			if said := check(failed.answer); said != nil && said.listed {
				failed.Permanent, failed.RetryAfter = false, cmp.Or(a.retryAfter, said.RetryAfter)
			}
		}
		if err != nil {
			return err
		}
		if refused := check(a.body); refused != nil {
			refused.RetryAfter = cmp.Or(a.retryAfter, refused.RetryAfter)
			return refused
		}
		return nil
	}
}

// temporary are the codes by which a robot answers that the same message may be taken
// later, with how much later that is at the earliest; 0 if the robot does not say.
type temporary map[int]time.Duration

// check reads the answer of DingTalk, Feishu or WeCom, which is 200 also for messages
// that they refuse. An answer without a code is not taken for success.
func (t temporary) check(answer string) *Error {
	var verdict struct {
		ErrCode *int   `json:"errcode"` // of DingTalk and WeCom
		ErrMsg  string `json:"errmsg"`
		Code    *int   `json:"code"` // of Feishu
		Msg     string `json:"msg"`
	}
	err := json.Unmarshal([]byte(answer), &verdict)
	code := cmp.Or(verdict.ErrCode, verdict.Code)
	switch {
	case err != nil || code == nil:
		return &Error{reason: "the answer has no code", answer: answer}
	case *code == 0:
		return nil
	}
	pause, listed := t[*code]
	return &Error{
		Permanent: !listed, RetryAfter: pause, listed: listed,
		reason: fmt.Sprintf("code %d", *code), answer: cmp.Or(verdict.ErrMsg, verdict.Msg),
	}
}

const everybody = "all"

// mentions returns the names to mention, and whether to mention everybody.
func (r *Receiver) mentions(n *Notification) (names []string, all bool) {
	if n.Routine {
		return nil, false
	}
	names = slices.DeleteFunc(slices.Clone(r.cfg.Mentions), func(m string) bool { return m == everybody })
	return names, slices.Contains(r.cfg.Mentions, everybody)
}

// color returns the one for a message that somebody must read, or for another.
func (n *Notification) color(alarm, calm string) string {
	if n.Routine || n.Status() == Resolved {
		return calm
	}
	return alarm
}
