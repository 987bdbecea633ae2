package receiver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// object is an object of JSON.
type object = map[string]any

// robot returns the function that sends the message of a chat robot and reads the
// answer.
func (r *Receiver) robot(message func(*Notification) object, check func(answer []byte) error) func(context.Context, *Notification) error {
	return func(ctx context.Context, n *Notification) error {
		address, err := r.address()
		if err != nil {
			return err
		}
		answer, err := r.post(ctx, address, message(n))
		if err != nil {
			return err
		}
		return check(answer)
	}
}

// A throttle is the code by which a robot answers that messages come too often, and
// for how long it does.
type throttle struct {
	code  int
	pause time.Duration
}

// check reads the answer of DingTalk, Feishu or WeCom, which is 200 also for messages
// that they refuse. An answer without a code is not taken for success.
func (t throttle) check(answer []byte) error {
	var verdict struct {
		ErrCode *int   `json:"errcode"` // of DingTalk and WeCom
		ErrMsg  string `json:"errmsg"`
		Code    *int   `json:"code"` // of Feishu
		Msg     string `json:"msg"`
	}
	err := json.Unmarshal(answer, &verdict)
	code := cmp.Or(verdict.ErrCode, verdict.Code)
	switch {
	case err != nil || code == nil:
		return &Error{reason: "the answer has no code", answer: string(answer)}
	case *code == 0:
		return nil
	}
	refused := &Error{Permanent: *code != t.code, reason: fmt.Sprintf("code %d", *code), answer: cmp.Or(verdict.ErrMsg, verdict.Msg)}
	if !refused.Permanent {
		refused.RetryAfter = t.pause
	}
	return refused
}

const everybody = "all"

// mentions returns the names to mention, and whether to mention everybody.
func (r *Receiver) mentions() (names []string, all bool) {
	names = slices.DeleteFunc(slices.Clone(r.cfg.Mentions), func(m string) bool { return m == everybody })
	return names, slices.Contains(r.cfg.Mentions, everybody)
}
