package receiver

import (
	"context"
	"strings"
)

const maxSlack = 3000 // bytes; longer texts are folded away

type slackMessage struct {
	Text        string            `json:"text"`
	Attachments []slackAttachment `json:"attachments"`
}

type slackAttachment struct {
	Color     string   `json:"color"`
	Fallback  string   `json:"fallback"`
	Title     string   `json:"title"`
	TitleLink string   `json:"title_link,omitempty"`
	Text      string   `json:"text"`
	Markdown  []string `json:"mrkdwn_in"` // none: the text is shown as it is
}

// Slack wants these three escaped, and nothing else.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (r *Receiver) slack(ctx context.Context, n *Notification) error {
	title := slackEscaper.Replace(n.title())
	msg := slackMessage{Text: r.slackMentions() + title}
	msg.Attachments = []slackAttachment{{
		Color:     map[Status]string{Firing: "danger", Resolved: "good"}[n.Status()],
		Fallback:  title,
		Title:     title,
		TitleLink: n.ExternalURL,
		Text:      r.body(n, maxSlack, slackEscaper.Replace),
		Markdown:  []string{},
	}}
	answer, err := r.post(ctx, r.cfg.URL, msg)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(answer)); got != "ok" {
		return &refusal{reason: "the answer is not ok", answer: got, permanent: true}
	}
	return nil
}

func (r *Receiver) slackMentions() string {
	var b strings.Builder
	for _, m := range r.cfg.Mentions {
		if m == everybody {
			b.WriteString("<!channel> ")
			continue
		}
		b.WriteString("<@" + m + "> ")
	}
	return b.String()
}
