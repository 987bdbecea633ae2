package receiver

import (
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

const maxWeCom = 2048 // bytes of a text message

var weComBusy = temporary{
	-1:    0,           // the system is busy
	45033: 0,           // too many requests at a time
	45009: time.Minute, // 20 messages a minute are exceeded
}

// A text of WeCom mentions somebody with <@name>; an alert must not.
var weComEscaper = strings.NewReplacer("<@", "< @")

func (r *Receiver) weCom(n *Notification) object {
	title := text.Clip(weComEscaper.Replace(n.title()), maxTitle)
	msg := object{"content": title + "\n" + r.body(n, maxWeCom-len(title)-1, weComEscaper.Replace)}
	mobiles, all := r.mentions(n)
	if all {
		mobiles = append(mobiles, "@all")
	}
	if len(mobiles) > 0 {
		msg["mentioned_mobile_list"] = mobiles
	}
	return object{"msgtype": "text", "text": msg}
}
