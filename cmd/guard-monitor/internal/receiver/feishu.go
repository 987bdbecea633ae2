package receiver

import (
	"strconv"
	"strings"
	"time"
)

const maxFeishu = 8000 // bytes of text: escaped it stays below the 20 KB of a body

// feishuBusy: a robot may send 5 messages a second and 100 a minute; on the hour, Feishu
// itself may have too much to do.
var feishuBusy = temporary{11232: 5 * time.Second, 99991400: 5 * time.Second}

// plain is text in which no mark is looked for, so an alert cannot mention anybody.
func plain(s string) object { return object{"tag": "plain_text", "content": s} }

func (r *Receiver) feishu(n *Notification) object {
	elements := []object{{"tag": "div", "text": plain(r.body(n, maxFeishu, nil))}}
	var at strings.Builder // configured names only
	names, all := r.mentions(n)
	if all {
		names = append(names, everybody)
	}
	for _, m := range names {
		at.WriteString("<at id=" + m + "></at>")
	}
	if at.Len() > 0 {
		elements = append(elements, object{"tag": "div", "text": object{"tag": "lark_md", "content": at.String()}})
	}
	if n.ExternalURL != "" {
		elements = append(elements, object{"tag": "action", "actions": []object{
			{"tag": "button", "text": plain("guard-monitor"), "url": n.ExternalURL, "type": "default"},
		}})
	}
	msg := object{"msg_type": "interactive", "card": object{
		"config":   object{"wide_screen_mode": true},
		"header":   object{"template": n.color("red", "green"), "title": plain(n.title())},
		"elements": elements,
	}}
	if r.cfg.Secret != "" {
		// The key is the time in seconds with the secret; nothing is signed.
		stamp := strconv.FormatInt(r.cfg.Now().Unix(), 10)
		msg["timestamp"], msg["sign"] = stamp, sign(stamp+"\n"+r.cfg.Secret, "")
	}
	return msg
}
