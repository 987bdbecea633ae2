package receiver

import "strings"

const maxSlack = 3000 // bytes; longer texts are folded away

// Slack requires these three to be escaped, and nothing else.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (r *Receiver) slack(n *Notification) object {
	var at strings.Builder
	for _, m := range r.cfg.Mentions {
		if m == everybody {
			at.WriteString("<!channel> ")
			continue
		}
		at.WriteString("<@" + m + "> ")
	}
	title := slackEscaper.Replace(n.title())
	attachment := object{
		"color":     map[Status]string{Firing: "danger", Resolved: "good"}[n.Status()],
		"fallback":  title,
		"title":     title,
		"text":      r.body(n, maxSlack, slackEscaper.Replace),
		"mrkdwn_in": []string{}, // the text is shown as it is
	}
	if n.ExternalURL != "" {
		attachment["title_link"] = n.ExternalURL
	}
	return object{"text": at.String() + title, "attachments": []object{attachment}}
}

func slackAnswer(answer []byte) error {
	if got := strings.TrimSpace(string(answer)); got != "ok" {
		return &Error{Permanent: true, reason: "the answer is not ok", answer: got}
	}
	return nil
}
