package receiver

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const (
	maxWeCom = 2048 // bytes of a text message

	weComThrottled = 45009
	weComPause     = time.Minute
)

type weComMessage struct {
	Type string    `json:"msgtype"`
	Text weComText `json:"text"`
}

type weComText struct {
	Content string   `json:"content"`
	Mobiles []string `json:"mentioned_mobile_list,omitempty"`
}

// A text of WeCom calls somebody with <@name>; an alert must not.
var weComEscaper = strings.NewReplacer("<@", "< @")

func (r *Receiver) weCom(ctx context.Context, n *Notification) error {
	title := text.Clip(weComEscaper.Replace(n.title()), maxTitle)
	content := title + "\n" + r.body(n, maxWeCom-len(title)-1, weComEscaper.Replace)
	msg := weComMessage{Type: "text", Text: weComText{Content: content}}
	mobiles, all := r.mentions()
	if msg.Text.Mobiles = mobiles; all {
		msg.Text.Mobiles = append(msg.Text.Mobiles, "@all")
	}
	answer, err := r.post(ctx, r.cfg.URL, msg)
	if err != nil {
		return err
	}
	return robotAnswer(answer, throttle{weComThrottled, weComPause})
}

// A throttle is the code by which a robot says "too often", and for how long
// it says so.
type throttle struct {
	code  int
	pause time.Duration
}

// robotAnswer reads the verdict of DingTalk and WeCom, who answer 200 to what
// they refuse. An answer that says nothing is not taken for success.
func robotAnswer(answer []byte, t throttle) error {
	var verdict struct {
		Code    *int   `json:"errcode"`
		Message string `json:"errmsg"`
	}
	if err := json.Unmarshal(answer, &verdict); err != nil || verdict.Code == nil {
		return &refusal{reason: "the answer has no errcode", answer: string(answer)}
	}
	return robotVerdict("errcode", *verdict.Code, verdict.Message, t)
}

func robotVerdict(name string, code int, message string, t throttle) error {
	if code == 0 {
		return nil
	}
	refused := &refusal{reason: fmt.Sprintf("%s %d", name, code), answer: message, permanent: true}
	if code == t.code {
		refused.permanent, refused.after = false, t.pause
	}
	return refused
}
