package receiver

import "time"

const maxDingTalk = 8000 // bytes of text: escaped it stays below the 20,000 of a body

// dingTalkLimit: a robot that sent too much is silent for ten minutes.
var dingTalkLimit = throttle{130101, 10 * time.Minute}

func (r *Receiver) dingTalk(n *Notification) object {
	msg := object{"msgtype": "text", "text": object{"content": n.title() + "\n" + r.body(n, maxDingTalk, nil)}}
	if mobiles, all := r.mentions(); len(mobiles) > 0 || all {
		msg["at"] = object{"atMobiles": mobiles, "isAtAll": all}
	}
	return msg
}
