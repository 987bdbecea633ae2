package receiver

import (
	"regexp"
	"slices"
	"strings"
)

const maxSlack = 3000 // bytes; longer texts are folded away

// Slack requires these three to be escaped, and nothing else.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (r *Receiver) slack(n *Notification) object {
	var at strings.Builder
	names, all := r.mentions(n)
	for _, m := range names {
		at.WriteString("<@" + m + "> ")
	}
	if all {
		at.WriteString("<!channel> ")
	}
	title := slackEscaper.Replace(n.title())
	attachment := object{
		"color":     n.color("danger", "good"),
		"fallback":  title,
		"title":     title,
		"text":      r.body(n, maxSlack, slackEscaper.Replace),
		"mrkdwn_in": []string{}, // the text is shown as it is
	}
	if n.ExternalURL != "" {
		attachment["title_link"] = n.ExternalURL
	}
	// Without mrkdwn a service named *b* is not bold. Mentions work all the same.
	return object{"text": at.String() + title, "mrkdwn": false, "attachments": []object{attachment}}
}

// slackWord is a reason of Slack's, such as invalid_token. What else comes is a proxy's.
var slackWord = regexp.MustCompile(`^[a-z_]+$`)

// slackBusy are the reasons for which the same message may be taken later.
var slackBusy = []string{"rate_limited", "ratelimited", "rollup_error"}

func slackAnswer(answer string) *Error {
	word := strings.TrimSpace(answer)
	if word == "ok" {
		return nil
	}
	return &Error{
		Permanent: slackWord.MatchString(word) && !slices.Contains(slackBusy, word),
		reason:    "the answer is not ok", answer: word,
	}
}
