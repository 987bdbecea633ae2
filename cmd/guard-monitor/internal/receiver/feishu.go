package receiver

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

const (
	maxFeishu = 8000 // bytes of text: escaped it stays below the 20 KB of a body

	feishuThrottled = 11232
	feishuPause     = time.Minute
)

type feishuMessage struct {
	Timestamp string     `json:"timestamp,omitempty"`
	Sign      string     `json:"sign,omitempty"`
	Type      string     `json:"msg_type"`
	Card      feishuCard `json:"card"`
}

type feishuCard struct {
	Config   feishuConfig    `json:"config"`
	Header   feishuHeader    `json:"header"`
	Elements []feishuElement `json:"elements"`
}

type feishuConfig struct {
	Wide bool `json:"wide_screen_mode"`
}

type feishuHeader struct {
	Template string     `json:"template"` // a colour
	Title    feishuText `json:"title"`
}

type feishuElement struct {
	Tag     string         `json:"tag"`
	Text    *feishuText    `json:"text,omitempty"`
	Actions []feishuButton `json:"actions,omitempty"`
}

type feishuButton struct {
	Tag  string     `json:"tag"`
	Text feishuText `json:"text"`
	URL  string     `json:"url"`
	Type string     `json:"type"`
}

type feishuText struct {
	Tag     string `json:"tag"`
	Content string `json:"content"`
}

// plain text is not searched for marks, so an alert cannot call anybody.
func plain(s string) *feishuText { return &feishuText{"plain_text", s} }

func (r *Receiver) feishu(ctx context.Context, n *Notification) error {
	msg := feishuMessage{Type: "interactive", Card: r.feishuCard(n)}
	if r.cfg.Secret != "" {
		// The key is the time in seconds with the secret; nothing is signed.
		msg.Timestamp = strconv.FormatInt(r.cfg.Now().Unix(), 10)
		msg.Sign = sign(msg.Timestamp+"\n"+r.cfg.Secret, "")
	}
	answer, err := r.post(ctx, r.cfg.URL, msg)
	if err != nil {
		return err
	}
	return feishuAnswer(answer)
}

func (r *Receiver) feishuCard(n *Notification) feishuCard {
	card := feishuCard{
		Config: feishuConfig{Wide: true},
		Header: feishuHeader{
			Template: map[Status]string{Firing: "red", Resolved: "green"}[n.Status()],
			Title:    *plain(n.title()),
		},
		Elements: []feishuElement{{Tag: "div", Text: plain(r.body(n, maxFeishu, nil))}},
	}
	if at := r.feishuMentions(); at != "" {
		card.Elements = append(card.Elements, feishuElement{Tag: "div", Text: &feishuText{"lark_md", at}})
	}
	if n.ExternalURL != "" {
		card.Elements = append(card.Elements, feishuElement{Tag: "action", Actions: []feishuButton{
			{Tag: "button", Text: *plain("guard-monitor"), URL: n.ExternalURL, Type: "default"},
		}})
	}
	return card
}

// feishuMentions holds configured names only.
func (r *Receiver) feishuMentions() string {
	var b strings.Builder
	for _, m := range r.cfg.Mentions {
		b.WriteString("<at id=" + m + "></at>")
	}
	return b.String()
}

func feishuAnswer(answer []byte) error {
	var verdict struct {
		Code    *int   `json:"code"`
		Message string `json:"msg"`
	}
	if err := json.Unmarshal(answer, &verdict); err != nil || verdict.Code == nil {
		return &refusal{reason: "the answer has no code", answer: string(answer)}
	}
	return robotVerdict("code", *verdict.Code, verdict.Message, throttle{feishuThrottled, feishuPause})
}
