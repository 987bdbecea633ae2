package receiver

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// New returns a receiver. It does not connect.
func New(cfg Config) (*Receiver, error) {
	cfg.Location, cfg.Client = cmp.Or(cfg.Location, time.UTC), cmp.Or(cfg.Client, newClient())
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Receiver{cfg: cfg, secret: newRedactor(cfg)}
	r.send = map[Kind]func(context.Context, *Notification) error{
		Webhook: r.webhook, Alertmanager: r.alertmanager, Slack: r.robot(r.slack, slackAnswer),
		DingTalk: r.robot(r.dingTalk, dingTalkBusy.check), Feishu: r.robot(r.feishu, feishuBusy.check),
		WeCom: r.robot(r.weCom, weComBusy.check),
	}[cfg.Kind]
	return r, nil
}

// Send returns nil after the receiver has taken n. The errors are *Error.
func (r *Receiver) Send(ctx context.Context, n *Notification) error {
	err := r.send(ctx, n)
	if err == nil {
		return nil
	}
	failed, refused := errors.AsType[*Error](err)
	if !refused {
		return &Error{Receiver: r.cfg.Name, reason: r.secret.clean(err.Error())}
	}
	// Cleaned before it is cut: a piece of a secret is not recognized.
	failed.Receiver, failed.reason = r.cfg.Name, failed.reason+": "+quoted(r.secret.clean(failed.answer))
	failed.answer = ""
	return failed
}
