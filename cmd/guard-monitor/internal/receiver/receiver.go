package receiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind is the type of a receiver, as the settings name it.
type Kind string

// The kinds.
const (
	Webhook      Kind = "webhook"
	Alertmanager Kind = "alertmanager"
	Slack        Kind = "slack"
	DingTalk     Kind = "dingtalk"
	Feishu       Kind = "feishu"
	WeCom        Kind = "wecom"
)

// Kinds are all kinds.
var Kinds = []Kind{Webhook, Alertmanager, Slack, DingTalk, Feishu, WeCom}

// Config sets up one receiver.
type Config struct {
	Name string // in logs, metrics and the store; required
	Kind Kind   // required

	URL      string   // where to send to; required, and secret
	Secret   string   // signs messages of DingTalk and Feishu; empty: unsigned
	Token    string   // sent as "Authorization: Bearer ..." to a webhook or Alertmanager; empty: none
	Mentions []string // whom a robot mentions: mobile numbers, for Slack and Feishu user ids; "all" for everybody

	Location *time.Location // of times in chat messages; default: UTC
	Client   *http.Client   // default: 10 s for each message, no redirects
	Now      func() time.Time
}

// Receiver sends notifications to one place. It is safe for concurrent use.
type Receiver struct {
	cfg    Config
	secret redactor
	send   func(context.Context, *Notification) error
}

// Name returns the configured name.
func (r *Receiver) Name() string { return r.cfg.Name }

// Error is a notification that did not arrive. It holds no secret.
type Error struct {
	Receiver   string
	Permanent  bool          // the same message would be refused again
	RetryAfter time.Duration // when to try again at the earliest; 0 if not said
	listed     bool          // the code of a robot says that it is temporary
	reason     string
	answer     string // whole, until Send returns: it may hold secrets
}

func (e *Error) Error() string { return fmt.Sprintf("receiver %q: %s", e.Receiver, e.reason) }

// Validate reports the first setting that is wrong, by its name in the file.
func (c *Config) Validate() error {
	switch {
	case !plainName.MatchString(c.Name):
		return fmt.Errorf("name %.80q: want 1 to 64 letters, digits, '-' and '_'", c.Name)
	case !slices.Contains(Kinds, c.Kind):
		return fmt.Errorf("type %.80q: want one of %s", c.Kind, kindWords())
	case c.Secret != "" && c.Kind != DingTalk && c.Kind != Feishu:
		return fmt.Errorf("secret: messages to %s are not signed", c.Kind)
	case c.Token != "" && c.Kind != Webhook && c.Kind != Alertmanager:
		return fmt.Errorf("token: %s takes none", c.Kind)
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("token: has a character outside printable ASCII")
	case len(c.Mentions) > 0 && (c.Kind == Webhook || c.Kind == Alertmanager):
		return fmt.Errorf("mentions: %s calls nobody", c.Kind)
	case slices.ContainsFunc(c.Mentions, func(m string) bool { return !plainName.MatchString(m) }):
		return errors.New("mentions: want mobile numbers or user ids of 1 to 64 letters, digits, '-' and '_'")
	}
	return c.validateURL()
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func kindWords() string {
	words := make([]string, 0, len(Kinds))
	for _, k := range Kinds {
		words = append(words, string(k))
	}
	return strings.Join(words, ", ")
}
