package receiver

import "time"

const maxDingTalk = 8000 // bytes of text: escaped it stays below the 20,000 of a body

// dingTalkBusy: a robot may send 20 messages a minute, and is then silent for ten minutes.
var dingTalkBusy = temporary{
	-1:     0,                // the system is busy
	500100: 0,                // the system failed: "try again later"
	410100: time.Minute,      // messages come too fast
	130101: 10 * time.Minute, // the limit is reached
}

func (r *Receiver) dingTalk(n *Notification) object {
	msg := object{"msgtype": "text", "text": object{"content": n.title() + "\n" + r.body(n, maxDingTalk, nil)}}
	if mobiles, all := r.mentions(n); len(mobiles) > 0 || all {
		msg["at"] = object{"atMobiles": mobiles, "isAtAll": all}
	}
	return msg
}
