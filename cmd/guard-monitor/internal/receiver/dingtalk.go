package receiver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	maxDingTalk = 8000 // bytes of text: escaped it stays below the 20,000 of a body

	dingTalkThrottled = 130101
	dingTalkMuted     = 10 * time.Minute // how long a robot that sent too much is silent
)

type dingTalkMessage struct {
	Type string      `json:"msgtype"`
	Text robotText   `json:"text"`
	At   *dingTalkAt `json:"at,omitempty"`
}

type robotText struct {
	Content string `json:"content"`
}

type dingTalkAt struct {
	Mobiles []string `json:"atMobiles,omitempty"`
	All     bool     `json:"isAtAll"`
}

func (r *Receiver) dingTalk(ctx context.Context, n *Notification) error {
	msg := dingTalkMessage{Type: "text", Text: robotText{n.title() + "\n" + r.body(n, maxDingTalk, nil)}}
	if mobiles, all := r.mentions(); len(mobiles) > 0 || all {
		msg.At = &dingTalkAt{mobiles, all}
	}
	address, err := r.dingTalkURL()
	if err != nil {
		return err
	}
	answer, err := r.post(ctx, address, msg)
	if err != nil {
		return err
	}
	return robotAnswer(answer, throttle{dingTalkThrottled, dingTalkMuted})
}

// dingTalkURL signs with the secret as the key and the time in milliseconds
// with the secret as the text.
func (r *Receiver) dingTalkURL() (string, error) {
	if r.cfg.Secret == "" {
		return r.cfg.URL, nil
	}
	address, err := url.Parse(r.cfg.URL)
	if err != nil {
		return "", err
	}
	stamp := strconv.FormatInt(r.cfg.Now().UnixMilli(), 10)
	query := address.Query()
	query.Set("timestamp", stamp)
	query.Set("sign", sign(r.cfg.Secret, stamp+"\n"+r.cfg.Secret))
	address.RawQuery = query.Encode()
	return address.String(), nil
}

func sign(key, message string) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte(message)) // never fails
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

const everybody = "all"

// mentions returns whom to call, and whether to call everybody.
func (r *Receiver) mentions() (names []string, all bool) {
	for _, m := range r.cfg.Mentions {
		if m != everybody {
			names = append(names, m)
		}
	}
	return names, slices.Contains(r.cfg.Mentions, everybody)
}
